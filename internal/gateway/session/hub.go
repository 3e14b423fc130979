package session

import (
	"sync"
	"sync/atomic"
)

// hub passes events on to those who may see them. Nobody waits for a reader.
type hub struct {
	mu     sync.Mutex
	groups map[group]map[*Subscription]bool // nil: it is over
}

func newHub() *hub { return &hub{groups: map[group]map[*Subscription]bool{}} }

// group are those who see the same: everything, what is of an account, or what is
// of one of its tasks.
type group struct {
	all           bool
	account, task string
}

// groupOf is who a view belongs to.
func groupOf(v View) group {
	if v.All {
		return group{all: true}
	}
	return group{account: v.Account}
}

// Subscription is a view of events from the moment it was made.
type Subscription struct {
	hub    *hub
	group  group
	events chan Event
	lost   atomic.Bool
}

// Events ends when the subscription does.
func (s *Subscription) Events() <-chan Event { return s.events }

// Lost reports that the reader left too much unread: its subscription is over and
// there is no telling what it missed.
func (s *Subscription) Lost() bool { return s.lost.Load() }

// Close ends the subscription. It may be called more than once.
func (s *Subscription) Close() {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	s.hub.drop(s)
}

// add makes a subscription that holds so many events for its reader.
func (h *hub) add(g group, buffer int) *Subscription {
	s := &Subscription{hub: h, group: g, events: make(chan Event, buffer)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.groups == nil {
		close(s.events)
		return s
	}
	if h.groups[g] == nil {
		h.groups[g] = map[*Subscription]bool{}
	}
	h.groups[g][s] = true
	return s
}

// drop takes a subscription out and ends its channel, once.
func (h *hub) drop(s *Subscription) {
	from := h.groups[s.group]
	if !from[s] {
		return
	}
	delete(from, s)
	if len(from) == 0 {
		delete(h.groups, s.group)
	}
	close(s.events)
}

func (h *hub) publish(e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, g := range []group{{all: true}, {account: e.Account}, {account: e.Account, task: e.Task}} {
		for s := range h.groups[g] {
			h.pass(s, e)
		}
	}
}

func (h *hub) pass(s *Subscription, e Event) {
	select {
	case s.events <- e:
	default:
		s.lost.Store(true)
		h.drop(s)
	}
}

func (h *hub) count() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, subscriptions := range h.groups {
		n += len(subscriptions)
	}
	return n
}

// close ends every subscription, and those that are yet to come.
func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, subscriptions := range h.groups {
		for s := range subscriptions {
			h.drop(s)
		}
	}
	h.groups = nil
}
