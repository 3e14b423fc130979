package guest

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// In the first moment there is no watch, which would be slow to end. What
// changes in that moment is seen all the same, as is what changes later.
func TestLookout(t *testing.T) {
	l := &lookout{dir: t.TempDir()}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	if l.events != nil {
		t.Fatal("the kernel was asked before the first look")
	}
	l.awaitChange(ctx)
	if l.events == nil {
		t.Fatal("the kernel was not asked")
	}
	told := make(chan struct{})
	go func() { defer close(told); l.awaitChange(ctx) }()
	select {
	case <-told:
		t.Fatal("told of a change, and there was none")
	case <-time.After(2 * recheckAfter):
	}
	if err := os.WriteFile(filepath.Join(l.dir, "new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	await(t, told, "a change")
	cancel()
	over := make(chan struct{})
	go func() { defer close(over); l.awaitChange(ctx) }()
	await(t, over, "the end")
}

// Where the kernel cannot tell, the guest goes on looking by itself.
func TestLookoutWithoutTheKernel(t *testing.T) {
	l := &lookout{dir: filepath.Join(t.TempDir(), "none")}
	for range 2 {
		l.awaitChange(t.Context())
		if l.events != nil {
			t.Fatal("there is nothing to watch")
		}
	}
}

func await(t *testing.T, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal(what + " was not noticed")
	}
}
