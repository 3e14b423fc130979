package wire

import (
	"sync/atomic"
	"time"
)

// pulse asks a peer whether it lives, again and again, while somebody waits for
// it. A wire on which nobody waits costs neither side anything: whoever asks
// next finds out.
type pulse struct {
	every   time.Duration
	awaited func() bool  // somebody waits for the peer
	ask     func() error // returns when the peer has answered, or must be given up
	lost    func()

	timer *time.Timer
	armed atomic.Bool
}

func newPulse(every time.Duration, awaited func() bool, ask func() error, lost func()) *pulse {
	p := &pulse{every: every, awaited: awaited, ask: ask, lost: lost}
	p.timer = time.AfterFunc(every, p.beat)
	p.timer.Stop()
	return p
}

// wake is called by whoever begins to wait. A guest has no pulse.
func (p *pulse) wake() {
	if p != nil && p.armed.CompareAndSwap(false, true) {
		p.timer.Reset(p.every)
	}
}

func (p *pulse) beat() {
	if !p.awaited() {
		p.armed.Store(false)
		if p.awaited() { // since we looked
			p.wake()
		}
		return
	}
	if p.ask() != nil {
		p.lost()
		return
	}
	p.timer.Reset(p.every)
}

func (p *pulse) stop() {
	if p != nil {
		p.timer.Stop()
	}
}
