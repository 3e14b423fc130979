// Package otheruser lets another user enter directories of a test and run programs
// of it.
package otheruser

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Open lets everybody enter a directory and those above it, up to the temporary
// directory, which stays as it is.
func Open(tb testing.TB, dir string) {
	tb.Helper()
	top := filepath.Clean(os.TempDir()) + "/"
	for ; strings.HasPrefix(dir, top); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			tb.Fatal(err)
		}
	}
}

// Program writes a program that everybody can run. No process is forked meanwhile:
// until it executes a program of its own it would have this one open for writing,
// and then this one cannot be executed.
func Program(tb testing.TB, path string, content []byte) {
	tb.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, content, 0o755); err != nil {
		tb.Fatal(err)
	}
}

// Self writes a copy of the test's own program, which everybody can run.
func Self(tb testing.TB, path string) {
	tb.Helper()
	own, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		tb.Fatal(err)
	}
	Program(tb, path, own)
}
