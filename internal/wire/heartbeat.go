package wire

import (
	"sync/atomic"
	"time"
)

// heartbeat asks a peer whether it lives, again and again, while somebody waits for
// it. A wire on which nobody waits costs neither side anything: whoever asks
// next finds out.
type heartbeat struct {
	every     time.Duration
	needed    func() bool  // somebody waits for the peer
	ping      func() error // returns when the peer has answered, or must be given up
	onTimeout func()

	timer *time.Timer
	armed atomic.Bool
}

func newHeartbeat(every time.Duration, awaited func() bool, ask func() error, lost func()) *heartbeat {
	p := &heartbeat{every: every, needed: awaited, ping: ask, onTimeout: lost}
	p.timer = time.AfterFunc(every, p.tick)
	p.timer.Stop()
	return p
}

// start is called by whoever begins to wait. A guest has no pulse.
func (p *heartbeat) start() {
	if p != nil && p.armed.CompareAndSwap(false, true) {
		p.timer.Reset(p.every)
	}
}

func (p *heartbeat) tick() {
	if !p.needed() {
		p.armed.Store(false)
		if p.needed() { // since we looked
			p.start()
		}
		return
	}
	if p.ping() != nil {
		p.onTimeout()
		return
	}
	p.timer.Reset(p.every)
}

func (p *heartbeat) stop() {
	if p != nil {
		p.timer.Stop()
	}
}
