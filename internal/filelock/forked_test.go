package filelock

import (
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestReleasedBesideAFork: a child has the descriptors of its parent until it
// becomes another program. What was released meanwhile is free.
func TestReleasedBesideAFork(t *testing.T) {
	b, err := Open(filepath.Join(t.TempDir(), "leases"))
	if err != nil {
		t.Fatal(err)
	}
	held, err := b.TryHold("a")
	if err != nil {
		t.Fatal(err)
	}
	childs, err := unix.Dup(int(held.file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(childs)
	held.Release()
	held.Release() // twice is harmless
	again, err := b.TryHold("a")
	if err != nil {
		t.Fatalf("released, and %v", err)
	}
	again.Release()
}
