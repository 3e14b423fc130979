package access

import (
	"net/netip"
	"sync"
	"time"
)

// Throttle slows down those who guess tokens: an address that fails too often is
// not listened to for a while.
type Throttle struct {
	now func() time.Time

	mu    sync.Mutex
	peers map[netip.Prefix]*failures
}

type failures struct {
	count int
	since time.Time // of the first that counts
	until time.Time // not listened to before
}

const (
	// Failures is how often an address may fail within FailureWindow.
	Failures = 10
	// FailureWindow is how long a failure counts.
	FailureWindow = time.Minute
	// Lockout is how long an address is not listened to then.
	Lockout  = 5 * time.Minute
	maxPeers = 10_000
)

// NewThrottle returns a throttle; now may be nil.
func NewThrottle(now func() time.Time) *Throttle {
	if now == nil {
		now = time.Now
	}
	return &Throttle{now: now, peers: map[netip.Prefix]*failures{}}
}

// Check is ErrTooMany while an address is not listened to. A loopback address is
// everybody on this machine: one who guesses there must not lock out the others,
// so there only the guesses are refused, by Failed.
func (t *Throttle) Check(from netip.Addr) error {
	if from.Unmap().IsLoopback() {
		return nil
	}
	return t.locked(from)
}

func (t *Throttle) locked(from netip.Addr) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f := t.peers[group(from)]; f != nil && t.now().Before(f.until) {
		return ErrTooMany
	}
	return nil
}

// Failed counts a wrong token and returns what to answer: ErrDenied, or ErrTooMany
// once there were too many.
func (t *Throttle) Failed(from netip.Addr) error {
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	key := group(from)
	f := t.peers[key]
	if f == nil {
		t.evict(now)
		f = &failures{since: now}
		t.peers[key] = f
	}
	if now.Before(f.until) {
		return ErrTooMany
	}
	if now.Sub(f.since) >= FailureWindow || now.Before(f.since) {
		f.count, f.since = 0, now
	}
	if f.count++; f.count > Failures {
		f.until = now.Add(Lockout)
		return ErrTooMany
	}
	return ErrDenied
}

// group is what counts as one peer: a host of IPv6 has a whole network.
func group(from netip.Addr) netip.Prefix {
	from = from.Unmap().WithZone("")
	bits := 32
	if from.Is6() {
		bits = 64
	}
	p, err := from.Prefix(bits)
	if err != nil {
		return netip.Prefix{} // no address: they share one count
	}
	return p
}

// evict keeps the memory bounded: first goes what counts no more, then
// anything, so much at once that looking through all of it stays rare. The lock is
// held.
func (t *Throttle) evict(now time.Time) {
	if len(t.peers) < maxPeers {
		return
	}
	for key, f := range t.peers {
		if !now.Before(f.until) && now.Sub(f.since) >= FailureWindow {
			delete(t.peers, key)
		}
	}
	for key := range t.peers {
		if len(t.peers) < maxPeers*3/4 {
			return
		}
		delete(t.peers, key)
	}
}
