package maxprocs

import (
	"runtime"
	"sync"
	"testing"
	"time"
)

// newLimiter returns a limiter with GOMAXPROCS set as in the guest.
func newLimiter(t *testing.T) *Limiter {
	before := runtime.GOMAXPROCS(Usual)
	s := NewLimiter()
	t.Cleanup(func() {
		s.timer.Stop()
		runtime.GOMAXPROCS(before)
	})
	return s
}

func wantProcs(t *testing.T, when string, want int) {
	t.Helper()
	if got := runtime.GOMAXPROCS(0); got != want {
		t.Errorf("%s: %d processors, want %d", when, got, want)
	}
}

func TestProcsLimiter(t *testing.T) {
	s := newLimiter(t)
	s.Raise()
	wantProcs(t, "during a large transfer", Raised)
	s.Raise()
	s.Release()
	s.lower()
	wantProcs(t, "while one of two transfers goes on", Raised)
	s.Release()
	for until := time.Now().Add(time.Minute); runtime.GOMAXPROCS(0) != Usual; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the second processor is kept for ever")
		}
	}
}

func TestProcsLimiterOfMany(t *testing.T) {
	s := newLimiter(t)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 100 {
				s.Raise()
				s.lower()
				s.Release()
			}
		})
	}
	wg.Wait()
	s.lower()
	wantProcs(t, "when all are done", Usual)
}
