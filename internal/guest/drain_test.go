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
		if got := drainUntilTooMuch(t, size); got < maxShortOutput || got > replay.Keep {
			t.Errorf("writes of %d bytes: %d bytes were drained", size, got)
		}
	}
}

// drainUntilTooMuch drains a pipe after each write of size bytes, and returns how much was
// moved until it was too much.
func drainUntilTooMuch(t *testing.T, size int) int64 {
	t.Helper()
	ours, theirs, err := pipe(false)
	if err != nil {
		t.Fatal(err)
	}
	defer closeNow(theirs)
	p := &process{out: newOutput(), stdio: &stdio{pipes: []int{ours}}}
	defer p.stdio.closePipes()
	done := make(chan error, 1)
	go func() {
		var err error
		for err == nil && p.drainPipes() != drainedTooMuch {
			_, err = unix.Write(theirs, make([]byte, size))
		}
		done <- err
	}()
	select {
	case err = <-done:
	case <-time.After(30 * time.Second):
		t.Fatal("a drain waits for a reader")
	}
	if err != nil {
		t.Fatal(err)
	}
	return p.out.total(0)
}
