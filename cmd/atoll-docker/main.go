// Command atoll-docker is the docker command line, over Atoll's sandboxes. It is
// small and starts quickly: what programs call all the time it does itself, the
// rest it leaves to the program atoll beside it.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/atoll-run/atoll/internal/dockercli"
	"github.com/atoll-run/atoll/internal/dockercli/fastpath"
)

func main() { os.Exit(run()) }

func run() int {
	ctx := &onSignal{}
	terminal := &dockercli.Terminal{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv}
	if state, err := stateDir(); err == nil && private(state) {
		if code, done := dockercli.Fast(ctx, os.Args[1:], terminal, fastpath.New(state)); done {
			return code
		}
	}
	ctx.deafen()
	return fail(becomeAtoll())
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, "docker:", err)
	return 125
}

// stateDir is where Atoll keeps its state: what config.Environment finds too.
func stateDir() (string, error) {
	if dir := os.Getenv("ATOLL_STATE_DIR"); dir != "" {
		if !filepath.IsAbs(dir) {
			return "", errors.New("relative, which is the whole program's matter")
		}
		return dir, nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".atoll"), err
}

// private reports whether a state directory is this user's alone. What is to be
// done about another one is the whole program's matter.
func private(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil {
		return false
	}
	return info.Mode().Perm()&0o077 == 0 && int(info.Sys().(*syscall.Stat_t).Uid) == os.Geteuid()
}

// becomeAtoll replaces this process by the whole program, called docker.
func becomeAtoll() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	whole := filepath.Join(filepath.Dir(self), "atoll")
	if _, err := os.Stat(whole); err != nil {
		if whole, err = exec.LookPath("atoll"); err != nil {
			return fmt.Errorf("the program atoll is neither beside %s nor in the PATH", self)
		}
	}
	return syscall.Exec(whole, append([]string{"docker"}, os.Args[1:]...), os.Environ())
}
