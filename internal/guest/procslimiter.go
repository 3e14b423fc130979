package guest

import (
	"runtime"
	"sync"
	"time"
)

// The guest mostly passes small things on: a request to a new process, and the
// end of that to the host. Where it may use a second processor the Go runtime
// wakes a thread at every such step, to look for work that is not there, and
// that thread takes the processor from the very process that the step was for.
// So it uses one, and two only while much is moved or many ask at once: then
// nobody's small request waits behind a large one.
const (
	usualProcs  = 1
	raisedProcs = 2
	// raisedFor is how long the second is kept after it was last needed: all
	// threads stand still for a moment while that changes.
	raisedFor = time.Second
	// largeTransfer is a size from which on moving it needs the second.
	largeTransfer = 1 << 20
)

// procsLimiter is how many processors the guest's own code uses at once.
type procsLimiter struct {
	mu      sync.Mutex
	holders int
	raised  bool
	timer   *time.Timer
}

func newProcsLimiter() *procsLimiter {
	s := &procsLimiter{}
	s.timer = time.AfterFunc(raisedFor, s.lower)
	s.timer.Stop()
	return s
}

// raise has the guest use two processors until release.
func (s *procsLimiter) raise() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holders++
	if !s.raised {
		s.raised = true
		runtime.GOMAXPROCS(raisedProcs)
	}
}

func (s *procsLimiter) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holders--; s.holders == 0 {
		s.timer.Reset(raisedFor)
	}
}

// raiseIf holds if there is much to do; releaseIf is its end.
func (s *procsLimiter) raiseIf(so bool) {
	if so {
		s.raise()
	}
}

func (s *procsLimiter) releaseIf(so bool) {
	if so {
		s.release()
	}
}

// lower goes back to one, unless somebody holds it again.
func (s *procsLimiter) lower() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.raised && s.holders == 0 {
		s.raised = false
		runtime.GOMAXPROCS(usualProcs)
	}
}
