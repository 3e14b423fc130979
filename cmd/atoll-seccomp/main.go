// Command atoll-seccomp puts the system call filter of sandboxes where a kubelet looks for
// profiles. It runs on every node of a cluster that has sandboxes (deploy/kubernetes).
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/atoll-run/atoll/internal/runtime/seccomp"
)

// profile is the name of the profile below the directory: kubernetes.seccompProfile.
const profile = "atoll/sandbox.json"

const usage = `usage: atoll-seccomp [--every TIME] DIRECTORY
  writes DIRECTORY/` + profile + `, and again every TIME until it is told to end

example: atoll-seccomp --every 1m /var/lib/kubelet/seccomp
`

func main() {
	every := flag.Duration("every", 0, "how long until it is written again; without it once")
	flag.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	flag.Parse()
	if flag.NArg() != 1 || *every < 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := keep(ctx, flag.Arg(0), *every); err != nil {
		fmt.Fprintln(os.Stderr, "atoll-seccomp:", err)
		os.Exit(1) //nolint:gocritic // stop has nothing to undo
	}
}

// keep writes the profile, and again until ctx ends unless every is 0.
func keep(ctx context.Context, dir string, every time.Duration) error {
	for {
		if err := install(dir); err != nil || every == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
	}
}

// install writes the profile as a whole: a pod that starts at this moment reads the old
// one or the new one.
func install(dir string) error {
	text, err := seccomp.NodeProfile(runtime.GOARCH)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, profile)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", text, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
