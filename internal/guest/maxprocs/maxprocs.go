// Package maxprocs sets how many processors the guest's own code uses at once.
//
// The guest mostly passes small messages on: a request to a new process, and its
// exit to the host. With GOMAXPROCS above 1 the Go runtime wakes a thread at every
// such step to look for more work, and that thread takes the processor from the
// process that the step was for. So the guest uses one processor, and two only
// during large transfers and while many requests run at once: then small requests
// do not wait behind large ones.
package maxprocs

import (
	"runtime"
	"sync"
	"time"
)

const (
	// Usual is GOMAXPROCS while nothing large moves.
	Usual = 1
	// Raised is GOMAXPROCS between Raise and Release.
	Raised = 2
	// raisedFor is how long Raised is kept after the last Release: each change stops
	// all threads for a moment.
	raisedFor = time.Second
	// LargeTransfer is the number of bytes from which a transfer raises the limit.
	LargeTransfer = 1 << 20
)

// Limiter switches GOMAXPROCS between Usual and Raised.
type Limiter struct {
	mu      sync.Mutex
	holders int
	raised  bool
	timer   *time.Timer
}

// NewLimiter returns a limiter; the caller has set Usual.
func NewLimiter() *Limiter {
	s := &Limiter{}
	s.timer = time.AfterFunc(raisedFor, s.lower)
	s.timer.Stop()
	return s
}

// Raise sets Raised until Release was called as often as Raise.
func (s *Limiter) Raise() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holders++
	if !s.raised {
		s.raised = true
		runtime.GOMAXPROCS(Raised)
	}
}

// Release undoes one Raise. The limit is lowered raisedFor later.
func (s *Limiter) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holders--; s.holders == 0 {
		s.timer.Reset(raisedFor)
	}
}

// RaiseIf calls Raise if so is true.
func (s *Limiter) RaiseIf(so bool) {
	if so {
		s.Raise()
	}
}

// ReleaseIf calls Release if so is true.
func (s *Limiter) ReleaseIf(so bool) {
	if so {
		s.Release()
	}
}

// lower sets Usual, unless Raise was called again.
func (s *Limiter) lower() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.raised && s.holders == 0 {
		s.raised = false
		runtime.GOMAXPROCS(Usual)
	}
}
