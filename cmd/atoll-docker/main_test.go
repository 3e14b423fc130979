package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// programs is a directory with atoll and atoll-docker, as `make build` makes
// them, for every user.
var programs string

func TestMain(m *testing.M) {
	code, err := withPrograms(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// withPrograms builds the programs, and removes them after the tests.
func withPrograms(tests func() int) (code int, err error) {
	if programs, err = os.MkdirTemp("", "atoll"); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(programs)) }()
	if err := os.Chmod(programs, 0o755); err != nil {
		return 0, err
	}
	for _, name := range []string{"atoll", "atoll-docker"} {
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(programs, name), "../"+name)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return 0, fmt.Errorf("build of %s: %w\n%s", name, err, out)
		}
	}
	return tests(), nil
}
