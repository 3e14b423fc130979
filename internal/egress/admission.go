package egress

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// waitersPerConnection bounds the connections that wait for others to end, as a
	// multiple of those that may be open.
	waitersPerConnection = 4
	// maxWait is how long a connection waits for others to end.
	maxWait = 10 * time.Second
)

var (
	errTooMany = errors.New("too many connections are open (egress.limits.connections)")
	errTooFast = errors.New("too many connections were opened in the last minute (egress.limits.newPerMinute)")
)

// admission bounds the connections of a server: how many are open, how many wait
// for that, and how many are new in a minute.
type admission struct {
	now func() time.Time

	mu      sync.Mutex
	handled int // connections with a handler, waiting or open
	open    int
	changed chan struct{} // closed when a connection ends
	tokens  float64       // connections that may be opened now
	counted time.Time
}

func newAdmission(now func() time.Time) *admission {
	return &admission{now: now, changed: make(chan struct{})}
}

// enter counts a connection that is about to be handled. It is false if too many
// are.
func (a *admission) enter(limit int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.handled >= limit*(1+waitersPerConnection) {
		return false
	}
	a.handled++
	return true
}

// leave undoes enter.
func (a *admission) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.handled--
}

// acquire waits until a connection may be open.
func (a *admission) acquire(ctx context.Context, limit, newPerMinute int) error {
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	for {
		changed, err := a.try(limit, newPerMinute)
		if changed == nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return errTooMany
		}
	}
}

// try takes a place. If there is none it returns the channel to wait for.
func (a *admission) try(limit, newPerMinute int) (changed chan struct{}, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open >= limit {
		return a.changed, nil
	}
	a.refill(float64(newPerMinute))
	if a.tokens < 1 {
		return nil, errTooFast
	}
	a.tokens--
	a.open++
	return nil, nil
}

// refill adds what the time since the last call permits.
func (a *admission) refill(newPerMinute float64) {
	now := a.now()
	if a.counted.IsZero() {
		a.tokens = newPerMinute
	} else {
		a.tokens = min(a.tokens+now.Sub(a.counted).Minutes()*newPerMinute, newPerMinute)
	}
	a.counted = now
}

// release gives a place back.
func (a *admission) release() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open--
	close(a.changed)
	a.changed = make(chan struct{})
}
