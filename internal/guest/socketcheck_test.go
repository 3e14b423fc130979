package guest

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestSocketCheck checks when the socket is checked: every second while a process
// runs, once more after the last has ended, and otherwise every five minutes.
func TestSocketCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var occupied atomic.Bool
		started := make(chan struct{}, 1)
		l := &socketCheck{occupied: occupied.Load, started: started}
		wait := func(what string, want time.Duration) {
			t.Helper()
			began := time.Now()
			if l.wait(t.Context()); time.Since(began) != want {
				t.Errorf("%s: checks after %v, want %v", what, time.Since(began), want)
			}
		}
		wait("no process", idlePoll)
		time.AfterFunc(time.Minute, func() { started <- struct{}{} })
		wait("a process that starts and ends at once", time.Minute+pollAfter)
		wait("after its end", pollAfter)
		wait("no process again", idlePoll)
		occupied.Store(true)
		wait("a process", pollAfter)
		wait("the same process", pollAfter)
		occupied.Store(false)
		wait("after its end", pollAfter)
		wait("no process at last", idlePoll)
	})
}

// TestSocketCheckEnds checks that no check is awaited any longer than the guest runs.
func TestSocketCheckEnds(t *testing.T) {
	for _, occupied := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			began := time.Now()
			if (&socketCheck{occupied: func() bool { return occupied }}).wait(ctx); time.Since(began) != 0 {
				t.Errorf("occupied %t: ends after %v", occupied, time.Since(began))
			}
		})
	}
}
