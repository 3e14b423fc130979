package secret

import (
	"errors"
	"sync/atomic"
	"time"
)

// When requests to a failing upstream are stopped, and for how long.
const (
	failuresToOpen = 5 // in a row
	firstPause     = time.Second
	longestPause   = 30 * time.Second
	probeTime      = 10 * time.Second // after which another request is tried
)

// ErrFailing means that the upstream failed so often in a row that no
// request is sent for a moment.
var ErrFailing = errors.New("the upstream fails again and again")

// breaker keeps requests from an upstream that fails. After a pause, which grows
// as the failures go on, it lets one through; if that is answered, all are let
// through again.
type breaker struct {
	failures atomic.Int32
	until    atomic.Int64 // unix nanoseconds
}

// allows reports whether a request may be sent now.
func (b *breaker) allows(now time.Time) bool {
	if b.failures.Load() < failuresToOpen {
		return true
	}
	until := b.until.Load()
	return until <= now.UnixNano() && b.until.CompareAndSwap(until, now.Add(probeTime).UnixNano())
}

func (b *breaker) answered() {
	if b.failures.Load() != 0 {
		b.failures.Store(0)
	}
}

func (b *breaker) failed(now time.Time) {
	over := b.failures.Add(1) - failuresToOpen
	if over < 0 {
		return
	}
	pause := longestPause
	if over < 5 { // beyond that the shift exceeds the longest
		pause = min(firstPause<<over, longestPause)
	}
	b.until.Store(now.Add(pause).UnixNano())
}
