package guest

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/wire"
	"github.com/atoll-run/atoll/internal/wire/replay"
)

// Pipes that are filled again after each drain, by large writes or by many small ones, end
// the drains before the ring is full: nobody reads it yet, and a drain would wait for ever.
func TestDrainsStopBeforeTheRingIsFull(t *testing.T) {
	for _, size := range []int{100, wire.MaxFrame} {
		ours, theirs, err := pipe(false)
		if err != nil {
			t.Fatal(err)
		}
		defer closeNow(theirs)
		p := &process{out: newOutput(), stdio: &stdio{pipes: []int{ours}}}
		defer p.stdio.closePipes()
		done := make(chan struct{})
		go func() {
			defer close(done)
			for p.drainPipes() != drainedTooMuch {
				if _, err := unix.Write(theirs, make([]byte, size)); err != nil {
					t.Error(err)
					return
				}
			}
		}()
		select {
		case <-done:
		case <-time.After(30 * time.Second):
			t.Fatal("a drain waits for a reader")
		}
		if got := p.out.total(0); got < maxShortOutput || got > replay.Keep {
			t.Errorf("writes of %d bytes: %d bytes were drained", size, got)
		}
	}
}
