package wire

import (
	"sync/atomic"
	"time"
)

// heartbeat pings the peer at an interval, while something waits for it. An idle
// wire costs neither side anything: the next request shows whether it is alive.
type heartbeat struct {
	every     time.Duration
	needed    func() bool  // something waits for the peer
	ping      func() error // returns when the peer has answered, or an error on timeout
	onTimeout func()

	timer *time.Timer
	armed atomic.Bool
}

func newHeartbeat(every time.Duration, needed func() bool, ping func() error, onTimeout func()) *heartbeat {
	p := &heartbeat{every: every, needed: needed, ping: ping, onTimeout: onTimeout}
	p.timer = time.AfterFunc(every, p.tick)
	p.timer.Stop()
	return p
}

// start is called when something begins to wait. The guest has a nil heartbeat.
func (p *heartbeat) start() {
	if p != nil && p.armed.CompareAndSwap(false, true) {
		p.timer.Reset(p.every)
	}
}

func (p *heartbeat) tick() {
	if !p.needed() {
		p.armed.Store(false)
		if p.needed() { // since the check
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
