package guest

import (
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/guest/proc"
	"github.com/atoll-run/atoll/internal/wire"
)

// termination is what happens when the sandbox is to end. Without a wait all ends at once;
// with one the commands end first, and files are served until the host has fetched them or
// the time is over.
type termination struct {
	mu      sync.Mutex
	wait    time.Duration
	changed chan struct{} // closed when wait is set to 0
	ending  chan struct{} // closed when no command may start any more
	ended   chan struct{} // closed when all commands have ended
	once    sync.Once
}

func newTermination() *termination {
	return &termination{changed: make(chan struct{}), ending: make(chan struct{}), ended: make(chan struct{})}
}

// set changes how long files are served.
func (t *termination) set(wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if wait == 0 && t.wait > 0 {
		close(t.changed)
		t.changed = make(chan struct{})
	}
	t.wait = wait
}

func (t *termination) current() (time.Duration, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.wait, t.changed
}

// begun reports whether the sandbox is to end.
func (t *termination) begun() bool {
	select {
	case <-t.ending:
		return true
	default:
		return false
	}
}

// terminate sets how long files are served after the signal, and ends the commands if that
// is asked for.
func (c *call) terminate(asked *wire.Terminate) error {
	if !asked.Valid() {
		return wire.Fail(wire.CodeInvalid, "the time to wait is out of range")
	}
	c.server.termination.set(time.Duration(asked.WaitMs) * time.Millisecond)
	if asked.End {
		c.server.endCommands()
	}
	return c.result(struct{}{})
}

// endCommands ends all commands, once; other callers wait for that.
func (s *server) endCommands() {
	s.termination.once.Do(func() {
		close(s.termination.ending)
		s.table.awaitStarted()
		running := s.table.after("")
		for _, p := range running {
			p.end(byTermination, stopGrace)
		}
		// What commands have left running ends with them. Programs of the host, as the one
		// that passes this wire on, are none of them.
		all := s.walker.Tree(proc.ExecSet{{First: 1, Last: s.lineage.Next()}})
		all.End(stopGrace)
		for _, p := range running {
			p.awaitEnd(outputTimeout)
		}
		close(s.termination.ended)
	})
	<-s.termination.ended
}

// awaitEnd waits until the result of a process is final, for so long after its tree has
// ended.
func (p *process) awaitEnd(most time.Duration) {
	select {
	case <-p.done:
	case <-time.After(2 * most):
	}
}

// onSignal returns when the sandbox may end: at once, or when the commands have ended and
// the time to fetch files is over.
func (s *server) onSignal() {
	wait, changed := s.termination.current()
	if wait == 0 {
		return
	}
	over := time.After(wait)
	s.endCommands()
	if wait, _ := s.termination.current(); wait == 0 {
		return
	}
	select {
	case <-changed:
	case <-over:
	}
	time.Sleep(proc.PollLast) // the answer to what changed it is under way
}
