package protocol

import (
	"encoding/json"
	"sync"
)

// SessionEvent is an agent event of one session.
type SessionEvent struct {
	RunID      string          `json:"runId"`
	SessionKey string          `json:"sessionKey"`
	Seq        int64           `json:"seq"`
	Stream     string          `json:"stream"`
	TS         int64           `json:"ts"` // when it happened, ms
	Data       json.RawMessage `json:"data"`
}

// Stream holds the events of one session. Gateways send events of every session to
// every client; those of other sessions are dropped here.
type Stream struct {
	client *Client
	key    string
	ready  chan struct{} // has one element while there are events

	mu    sync.Mutex
	queue []SessionEvent
	bytes int
	lost  bool
}

// Stream follows a session. A second stream of the same session replaces the first.
func (c *Client) Stream(key string) *Stream {
	s := &Stream{client: c, key: key, ready: make(chan struct{}, 1)}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.streams[key] = s
	return s
}

// Close ends the stream.
func (s *Stream) Close() {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	if s.client.streams[s.key] == s {
		delete(s.client.streams, s.key)
	}
}

// Ready has an element when Take has events.
func (s *Stream) Ready() <-chan struct{} { return s.ready }

// Take returns the events since the last call.
func (s *Stream) Take() []SessionEvent {
	s.mu.Lock()
	defer s.mu.Unlock()
	events := s.queue
	s.queue, s.bytes = nil, 0
	return events
}

// Lost reports whether events were dropped because they were not taken in time.
func (s *Stream) Lost() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// deliver passes an agent event to the stream of its session. Only the key in the
// event counts: without it, or without a stream, the event is dropped.
func (c *Client) deliver(f *frame) {
	if f.Event != "agent" {
		return
	}
	var e SessionEvent
	if json.Unmarshal(f.Payload, &e) != nil || e.SessionKey == "" {
		return
	}
	c.mu.Lock()
	s := c.streams[e.SessionKey]
	c.mu.Unlock()
	if s != nil {
		s.put(e, len(f.Payload), c.options.MaxStream)
	}
}

func (s *Stream) put(e SessionEvent, size, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bytes+size > most {
		s.lost = true
		return
	}
	s.queue, s.bytes = append(s.queue, e), s.bytes+size
	select {
	case s.ready <- struct{}{}:
	default:
	}
}
