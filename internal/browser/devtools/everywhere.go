package devtools

import "github.com/chromedp/cdproto/cdp/jsonv2"

// Event is an event of a session.
type Event struct {
	Session string // its id; "" is the browser's own
	Params  jsonv2.Value
}

// everySession keeps the events of a method of all sessions until they are read.
type everySession struct {
	method string
	events chan Event
}

// take keeps an event. Where too many wait, the oldest goes.
func (s *everySession) take(m *message) {
	if m.Method != s.method || len(m.Params) > maxEvent {
		return
	}
	for {
		select {
		case s.events <- Event{m.SessionID, jsonv2.Value(m.Params)}:
			return
		default:
		}
		select {
		case <-s.events:
		default:
		}
	}
}

// SubscribeAll begins to keep the events of a method of all sessions. cancel ends that.
func (c *Conn) SubscribeAll(method string) (events <-chan Event, cancel func()) {
	kept := &everySession{method, make(chan Event, maxEvents)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		close(kept.events)
		return kept.events, func() {}
	}
	c.everywhere[kept] = struct{}{}
	return kept.events, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.everywhere, kept)
	}
}
