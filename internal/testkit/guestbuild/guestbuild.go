// Package guestbuild builds the guest for tests, from the source they test.
package guestbuild

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/runtime/guestbin"
)

// program is what is built.
const program = "github.com/atoll-run/atoll/cmd/atoll-guest"

// keepFor is how long a build is kept that no test has asked for.
const keepFor = 24 * time.Hour

// Build returns the path of a guest for this machine. It is built once per test
// binary and kept under a name made of its content, so that every test of a run
// shares one file.
func Build(tb testing.TB) string {
	tb.Helper()
	return BuildFor(tb, runtime.GOARCH)
}

// BuildFor is Build for another architecture.
func BuildFor(tb testing.TB, arch string) string {
	tb.Helper()
	path, err := builds[arch]()
	if err != nil {
		tb.Fatalf("build the guest: %v", err)
	}
	return path
}

// builds are made when they are first asked for.
var builds = map[string]func() (string, error){
	"amd64": sync.OnceValues(func() (string, error) { return build("amd64") }),
	"arm64": sync.OnceValues(func() (string, error) { return build("arm64") }),
}

// builtVariable, with an architecture, tells the processes that a test starts
// where the guest is that it has built: some tests start themselves often.
const builtVariable = "ATOLL_TEST_BUILT_GUEST_"

func build(arch string) (string, error) {
	if path := os.Getenv(builtVariable + arch); path != "" {
		return path, nil
	}
	path, err := buildNew(arch)
	if err != nil {
		return "", err
	}
	return path, os.Setenv(builtVariable+arch, path)
}

func buildNew(arch string) (string, error) {
	dir := filepath.Join(os.TempDir(), "atoll-guest-test-"+strconv.Itoa(os.Getuid()))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	removeOld(dir)
	fresh, err := compile(dir, arch)
	if err != nil {
		return "", err
	}
	content, err := os.ReadFile(fresh)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "atoll-guest-"+guestbin.Hash(content))
	return path, os.Rename(fresh, path)
}

func compile(dir, arch string) (string, error) {
	path := filepath.Join(dir, fmt.Sprintf("building-%s-%d", arch, os.Getpid()))
	cmd := exec.CommandContext(context.Background(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, program)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOARCH="+arch)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, nil
}

func removeOld(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && time.Since(info.ModTime()) > keepFor {
			_ = os.Remove(filepath.Join(dir, entry.Name()))
		}
	}
}
