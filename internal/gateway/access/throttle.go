package access

import (
	"net/netip"
	"sync"
	"time"
)

// Throttle refuses addresses that fail authentication too often.
type Throttle struct {
	now func() time.Time

	mu    sync.Mutex
	peers map[netip.Prefix]*failures
}

type failures struct {
	count int
	since time.Time // the first failure in the window
	until time.Time // refused until then
}

const (
	// Failures is how often an address may fail within FailureWindow.
	Failures = 10
	// FailureWindow is how long a failure counts.
	FailureWindow = time.Minute
	// Lockout is how long an address is refused after that.
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

// Check returns ErrTooMany while an address is refused. A loopback address is
// shared by all users of this machine, so it is never refused here: only wrong
// tokens are, by Failed.
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
// above the limit.
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

// group returns the prefix that counts as one peer: /32 of IPv4, /64 of IPv6.
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

// evict bounds the memory: first expired entries are removed, then any, a quarter
// at a time so that full scans are rare. The caller holds the lock.
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
