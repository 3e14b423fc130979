package session

import (
	"sync"
	"sync/atomic"
)

// hub passes events to the subscriptions that may see them. Publishing never
// blocks.
type hub struct {
	mu        sync.Mutex
	audiences map[audience]map[*Subscription]bool // nil after close
}

func newHub() *hub { return &hub{audiences: map[audience]map[*Subscription]bool{}} }

// audience identifies subscriptions with the same view: all accounts, one account,
// or one task.
type audience struct {
	all           bool
	account, task string
}

// audienceOf returns the audience of a view.
func audienceOf(v View) audience {
	if v.All {
		return audience{all: true}
	}
	return audience{account: v.Account}
}

// Subscription receives events from the moment it was made.
type Subscription struct {
	hub    *hub
	group  audience
	events chan Event
	lost   atomic.Bool
}

// Events returns the channel of events, which is closed with the subscription.
func (s *Subscription) Events() <-chan Event { return s.events }

// Lost reports that the reader was too slow: the subscription has ended and events
// were lost.
func (s *Subscription) Lost() bool { return s.lost.Load() }

// Close ends the subscription. It may be called more than once.
func (s *Subscription) Close() {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	s.hub.drop(s)
}

// add makes a subscription with a buffer.
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

// drop removes a subscription and closes its channel, once.
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

// close ends every subscription; later ones end at once.
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
