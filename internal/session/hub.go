package session

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// hub passes events on to those who may see them. Nobody waits for a reader.
type hub struct {
	mu        sync.Mutex
	byAccount map[string]map[*Subscription]bool
	all       map[*Subscription]bool
	byTask    map[taskID]map[*Subscription]bool
}

func newHub() *hub {
	return &hub{byAccount: map[string]map[*Subscription]bool{}, all: map[*Subscription]bool{}, byTask: map[taskID]map[*Subscription]bool{}}
}

// Subscription is a view of events from the moment it was made.
type Subscription struct {
	hub    *hub
	view   View
	task   taskID // of one task alone; id "" otherwise
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
func (h *hub) add(v View, buffer int) *Subscription {
	s := &Subscription{hub: h, view: v, events: make(chan Event, buffer)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all == nil { // it is over
		close(s.events)
		return s
	}
	if v.All {
		h.all[s] = true
		return s
	}
	if h.byAccount[v.Account] == nil {
		h.byAccount[v.Account] = map[*Subscription]bool{}
	}
	h.byAccount[v.Account][s] = true
	return s
}

// follow makes a subscription to one task.
func (h *hub) follow(id taskID, buffer int) *Subscription {
	s := &Subscription{hub: h, task: id, events: make(chan Event, buffer)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all == nil { // it is over
		close(s.events)
		return s
	}
	if h.byTask[id] == nil {
		h.byTask[id] = map[*Subscription]bool{}
	}
	h.byTask[id][s] = true
	return s
}

// drop takes a subscription out and ends its channel, once.
func (h *hub) drop(s *Subscription) {
	from := h.all
	switch {
	case s.task.id != "":
		from = h.byTask[s.task]
	case !s.view.All:
		from = h.byAccount[s.view.Account]
	}
	if !from[s] {
		return
	}
	delete(from, s)
	switch {
	case len(from) > 0:
	case s.task.id != "":
		delete(h.byTask, s.task)
	case !s.view.All:
		delete(h.byAccount, s.view.Account)
	}
	close(s.events)
}

func (h *hub) publish(e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.all {
		h.pass(s, e)
	}
	for s := range h.byAccount[e.Account] {
		h.pass(s, e)
	}
	for s := range h.byTask[taskID{e.Account, e.Task}] {
		h.pass(s, e)
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

func (h *hub) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(h.all)
	for _, subscriptions := range h.byAccount {
		n += len(subscriptions)
	}
	for _, subscriptions := range h.byTask {
		n += len(subscriptions)
	}
	return n
}

// close ends every subscription, and those that are yet to come.
func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range slices.Collect(maps.Keys(h.all)) {
		h.drop(s)
	}
	for _, subscriptions := range h.byAccount {
		for _, s := range slices.Collect(maps.Keys(subscriptions)) {
			h.drop(s)
		}
	}
	for _, subscriptions := range h.byTask {
		for _, s := range slices.Collect(maps.Keys(subscriptions)) {
			h.drop(s)
		}
	}
	h.all = nil
}
