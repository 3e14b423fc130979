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
	usualStride = 1
	wideStride  = 2
	// wideFor is how long the second is kept after it was last needed: all
	// threads stand still for a moment while that changes.
	wideFor = time.Second
	// much is a size from which on moving it needs the second.
	much = 1 << 20
)

// stride is how many processors the guest's own code uses at once.
type stride struct {
	mu      sync.Mutex
	holders int
	wide    bool
	timer   *time.Timer
}

func newStride() *stride {
	s := &stride{}
	s.timer = time.AfterFunc(wideFor, s.shorten)
	s.timer.Stop()
	return s
}

// hold has the guest use two processors until release.
func (s *stride) hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holders++
	if !s.wide {
		s.wide = true
		runtime.GOMAXPROCS(wideStride)
	}
}

func (s *stride) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holders--; s.holders == 0 {
		s.timer.Reset(wideFor)
	}
}

// holdIf holds if there is much to do; releaseIf is its end.
func (s *stride) holdIf(so bool) {
	if so {
		s.hold()
	}
}

func (s *stride) releaseIf(so bool) {
	if so {
		s.release()
	}
}

// shorten goes back to one, unless somebody holds it again.
func (s *stride) shorten() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wide && s.holders == 0 {
		s.wide = false
		runtime.GOMAXPROCS(usualStride)
	}
}
