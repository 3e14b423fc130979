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

// Open sets the mode of a directory and of those above it, below the temporary
// directory, to 0755.
func Open(tb testing.TB, dir string) {
	tb.Helper()
	top := filepath.Clean(os.TempDir()) + "/"
	for ; strings.HasPrefix(dir, top); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			tb.Fatal(err)
		}
	}
}

// Program writes an executable with mode 0755. It holds ForkLock: a child that was
// forked meanwhile would inherit the descriptor that is open for writing, and execve of
// the file would fail with ETXTBSY until that child executes its own program.
func Program(tb testing.TB, path string, content []byte) {
	tb.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, content, 0o755); err != nil {
		tb.Fatal(err)
	}
}

// Self writes a copy of the running test binary with mode 0755.
func Self(tb testing.TB, path string) {
	tb.Helper()
	own, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		tb.Fatal(err)
	}
	Program(tb, path, own)
}
