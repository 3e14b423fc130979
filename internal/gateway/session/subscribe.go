package session

import (
	"sync"
	"sync/atomic"
)

// hub passes events on to those who may see them. Nobody waits for a reader.
type hub struct {
	mu        sync.Mutex
	audiences map[audience]map[*Subscription]bool // nil: it is over
}

func newHub() *hub { return &hub{audiences: map[audience]map[*Subscription]bool{}} }

// audience are those who see the same: everything, what is of an account, or what is
// of one of its tasks.
type audience struct {
	all           bool
	account, task string
}

// audienceOf is who a view belongs to.
func audienceOf(v View) audience {
	if v.All {
		return audience{all: true}
	}
	return audience{account: v.Account}
}

// Subscription is a view of events from the moment it was made.
type Subscription struct {
	hub    *hub
	group  audience
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
func (h *hub) add(g audience, buffer int) *Subscription {
	s := &Subscription{hub: h, group: g, events: make(chan Event, buffer)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.audiences == nil {
		close(s.events)
		return s
	}
	if h.audiences[g] == nil {
		h.audiences[g] = map[*Subscription]bool{}
	}
	h.audiences[g][s] = true
	return s
}

// drop takes a subscription out and ends its channel, once.
func (h *hub) drop(s *Subscription) {
	from := h.audiences[s.group]
	if !from[s] {
		return
	}
	delete(from, s)
	if len(from) == 0 {
		delete(h.audiences, s.group)
	}
	close(s.events)
}

func (h *hub) publish(e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, g := range []audience{{all: true}, {account: e.Account}, {account: e.Account, task: e.Task}} {
		for s := range h.audiences[g] {
			h.deliver(s, e)
		}
	}
}

func (h *hub) deliver(s *Subscription, e Event) {
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
	for _, subscriptions := range h.audiences {
		n += len(subscriptions)
	}
	return n
}

// close ends every subscription, and those that are yet to come.
func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, subscriptions := range h.audiences {
		for s := range subscriptions {
			h.drop(s)
		}
	}
	h.audiences = nil
}
