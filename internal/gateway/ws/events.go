package ws

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/gateway/session"
)

// eventBuffer is how many session events may wait here. The reader never blocks, so
// it absorbs bursts only.
const eventBuffer = 8192

// resubscribeDelay is the wait before a new subscription.
const resubscribeDelay = time.Second

// follow forwards the events of all sessions to the connections that may see them,
// until the server ends.
func (s *Server) follow(sub *session.Subscription) {
	for ; s.ctx.Err() == nil; sub = s.subscribe() {
		s.forwardEvents(sub)
		sub.Close()
		if s.ctx.Err() == nil && sub.Lost() {
			s.Logger.ErrorContext(s.ctx, "gateway events were lost: too many at once")
			s.meters.lost.With().Inc()
			s.hub.skipSeq()
			continue
		}
		select { // the session service was closed first
		case <-s.ctx.Done():
		case done := <-s.waiters:
			close(done)
		case <-time.After(resubscribeDelay):
		}
	}
	sub.Close()
}

func (s *Server) subscribe() *session.Subscription {
	return s.Sessions.Subscribe(session.View{All: true}, eventBuffer)
}

// waitCaughtUp waits until all published events are in the outboxes: clients expect
// the events of a task before the reply about its end.
func (s *Server) waitCaughtUp(ctx context.Context) {
	done := make(chan struct{})
	select {
	case s.waiters <- done:
		<-done
	case <-ctx.Done():
	case <-s.ctx.Done():
	}
}

func (s *Server) forwardEvents(sub *session.Subscription) {
	n := &eventEncoder{server: s, turns: map[turnID]*turn{}}
	for {
		select {
		case <-s.ctx.Done():
			return
		case e, ok := <-sub.Events():
			if !ok {
				return
			}
			n.encode(&e)
		case done := <-s.waiters:
			n.encodePending(sub)
			close(done)
		}
	}
}

// encodePending encodes the events that have arrived so far.
func (n *eventEncoder) encodePending(sub *session.Subscription) {
	for range len(sub.Events()) {
		if e, ok := <-sub.Events(); ok {
			n.encode(&e)
		}
	}
}

// eventEncoder converts session events to events of the protocol. It belongs to one
// goroutine.
type eventEncoder struct {
	server *Server
	turns  map[turnID]*turn
}

// turnID identifies a task: ids are unique within an account.
type turnID struct{ account, task string }

// turn is the state of a task's event stream.
type turn struct {
	seq         int64 // of frames of the stream "agent"
	started     int64
	text        string    // of the message, so far
	pending     string    // part of it that was not sent yet
	sentAt      time.Time // when text was last sent
	lastDelta   string    // text of the last chat delta
	lastDeltaAt time.Time // of that delta
	touched     time.Time
}

// maxTurns bounds the tasks with state here; the one with the oldest event is
// evicted.
const maxTurns = 10_000

func (n *eventEncoder) turn(e *session.Event) *turn {
	id := turnID{e.Account, e.Task}
	t := n.turns[id]
	if t == nil {
		n.evict()
		t = &turn{started: e.At.UnixMilli()}
		n.turns[id] = t
	}
	t.touched = e.At
	return t
}

func (n *eventEncoder) evict() {
	if len(n.turns) < maxTurns {
		return
	}
	var oldest turnID
	var since time.Time
	for id, t := range n.turns {
		if since.IsZero() || t.touched.Before(since) {
			oldest, since = id, t.touched
		}
	}
	delete(n.turns, oldest)
}

// encode converts one event and publishes it.
func (n *eventEncoder) encode(e *session.Event) {
	switch e.Kind {
	case session.Accepted:
	case session.Changed:
		n.server.hub.publish(e.Account, []encodedEvent{changed(e, "patch")})
	case session.Called, session.Returned:
		n.server.hub.publish(e.Account, n.turn(e).flush(e))
		n.server.hub.publishToOrigin(e.Origin, e.Account, n.tool(e))
	case session.Ended:
		n.server.hub.publish(e.Account, n.end(e))
		delete(n.turns, turnID{e.Account, e.Task})
	case session.Started:
		n.server.hub.publish(e.Account, n.start(e))
	case session.Said:
		n.server.hub.publish(e.Account, n.say(e))
	case session.Used:
		n.server.hub.publish(e.Account, n.used(e))
	case session.Noticed, session.Prepared:
	}
}
