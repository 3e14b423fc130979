package guest

import (
	"runtime"
	"sync"
	"testing"
	"time"
)

// strider returns a stride that begins as the guest does.
func strider(t *testing.T) *stride {
	before := runtime.GOMAXPROCS(usualStride)
	s := newStride()
	t.Cleanup(func() {
		s.timer.Stop()
		runtime.GOMAXPROCS(before)
	})
	return s
}

func wantStride(t *testing.T, when string, want int) {
	t.Helper()
	if got := runtime.GOMAXPROCS(0); got != want {
		t.Errorf("%s: %d processors, want %d", when, got, want)
	}
}

func TestStride(t *testing.T) {
	s := strider(t)
	s.hold()
	wantStride(t, "while somebody moves much", wideStride)
	s.hold()
	s.release()
	s.shorten()
	wantStride(t, "while one of two is still at it", wideStride)
	s.release()
	for until := time.Now().Add(time.Minute); runtime.GOMAXPROCS(0) != usualStride; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the second processor is kept for ever")
		}
	}
}

func TestStrideOfMany(t *testing.T) {
	s := strider(t)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 100 {
				s.hold()
				s.shorten()
				s.release()
			}
		})
	}
	wg.Wait()
	s.shorten()
	wantStride(t, "when all are done", usualStride)
}
