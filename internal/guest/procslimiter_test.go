package guest

import (
	"runtime"
	"sync"
	"testing"
	"time"
)

// strider returns a stride that begins as the guest does.
func strider(t *testing.T) *procsLimiter {
	before := runtime.GOMAXPROCS(usualProcs)
	s := newProcsLimiter()
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
	s := strider(t)
	s.raise()
	wantProcs(t, "while somebody moves much", raisedProcs)
	s.raise()
	s.release()
	s.lower()
	wantProcs(t, "while one of two is still at it", raisedProcs)
	s.release()
	for until := time.Now().Add(time.Minute); runtime.GOMAXPROCS(0) != usualProcs; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the second processor is kept for ever")
		}
	}
}

func TestProcsLimiterOfMany(t *testing.T) {
	s := strider(t)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 100 {
				s.raise()
				s.lower()
				s.release()
			}
		})
	}
	wg.Wait()
	s.lower()
	wantProcs(t, "when all are done", usualProcs)
}
