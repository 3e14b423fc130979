package sandbox

import (
	"context"
	"time"
)

// Listing shares lists of all sandboxes among callers, so that those who ask at the same
// time, or whom an older answer serves, do not each ask the engines.
type Listing struct {
	manager *Manager
	turn    chan struct{} // a lock: has one element while no caller reads the list
	begun   time.Time     // when the engines were asked
	all     []Status
}

// NewListing returns a listing of the sandboxes of a manager.
func NewListing(m *Manager) *Listing {
	l := &Listing{manager: m, turn: make(chan struct{}, 1)}
	l.turn <- struct{}{}
	return l
}

// Within returns all sandboxes, the last used first, as they were at most so long ago; 0
// is now. Callers share the answer and must not change it.
func (l *Listing) Within(ctx context.Context, age time.Duration) ([]Status, error) {
	oldest := time.Now().Add(-age)
	select {
	case <-l.turn:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { l.turn <- struct{}{} }()
	if l.all != nil && !l.begun.Before(oldest) {
		return l.all, nil
	}
	begun := time.Now()
	all, _, err := l.manager.List(ctx, 0)
	if err != nil {
		return nil, err
	}
	l.begun, l.all = begun, all
	return all, nil
}
