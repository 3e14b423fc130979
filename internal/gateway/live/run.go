package live

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/atoll-run/atoll/api"
)

// runEvery is how often a run is looked at that another process may execute.
const runEvery = 5 * time.Second

// runStream follows a run. Its events are in the store, so that a slow client costs
// nothing; their numbers are those of the messages.
type runStream struct {
	conn    *conn
	topic   string
	id      string
	after   int64
	last    string // the run as it was sent, as JSON
	begun   bool   // something was sent
	changed atomic.Bool
	quit    func()
	done    chan struct{}
}

func newRunStream(c *conn, topic, id string, since int64) *runStream {
	s := &runStream{conn: c, topic: topic, id: id, after: since, done: make(chan struct{})}
	signal, quit := c.handler.Source.FollowRun(id)
	s.changed.Store(true)
	s.quit = func() { quit(); close(s.done) }
	c.handler.work.Go(func() { s.forward(signal) })
	return s
}

// forward wakes the connection when the run has events.
func (s *runStream) forward(signal <-chan struct{}) {
	for {
		select {
		case <-s.done:
			return
		case <-signal:
			s.changed.Store(true)
			s.conn.ring()
		}
	}
}

func (s *runStream) close() { s.quit() }

// next returns the run, if it has changed, and its next events.
func (s *runStream) next(ctx context.Context) ([]byte, error) {
	if !s.changed.Swap(false) {
		return nil, nil
	}
	run, events, err := s.conn.handler.Source.Run(ctx, s.conn.caller, s.id, s.after)
	if err != nil {
		return nil, err
	}
	row, err := json.Marshal(run)
	if err != nil {
		return nil, err
	}
	m := &api.LiveMessage{Type: api.LiveDelta, Topic: s.topic, Events: cut(events)}
	if len(m.Events) > 0 {
		s.after = m.Events[len(m.Events)-1].Seq
		s.changed.Store(true) // there may be more
	}
	if string(row) != s.last {
		s.last, m.Keys, m.Rows = string(row), []string{"run"}, []json.RawMessage{row}
	}
	return s.encode(m)
}

// encode returns a message that says something, or nil. The first is a snapshot, unless
// the client has what came before.
func (s *runStream) encode(m *api.LiveMessage) ([]byte, error) {
	if !s.begun && (len(m.Events) == 0 || m.Events[0].Seq == 1) {
		m.Type = api.LiveSnapshot
	}
	if s.begun && len(m.Keys)+len(m.Events) == 0 {
		return nil, nil
	}
	s.begun, m.Seq = true, s.after
	return json.Marshal(m)
}

// cut returns as many events as fit into a message.
func cut(events []api.Event) []api.Event {
	size := 0
	for i := range events {
		size += 256 + len(events[i].Text)
		if c := events[i].Call; c != nil {
			size += len(c.Args)
		}
		if size > maxPage && i > 0 {
			return events[:i]
		}
	}
	return events
}
