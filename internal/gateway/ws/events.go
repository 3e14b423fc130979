package ws

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/gateway/session"
)

// eventBuffer is how many events of sessions may wait for us. We never wait for
// anybody, so it is only for bursts.
const eventBuffer = 8192

// resubscribeDelay is how long to wait before events are asked for again.
const resubscribeDelay = time.Second

// follow passes on what happens in sessions, until the server ends. It sees all
// accounts and passes each event to its audience.
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
		select { // the sessions are over before us
		case <-s.ctx.Done():
		case told := <-s.waiters:
			close(told)
		case <-time.After(resubscribeDelay):
		}
	}
	sub.Close()
}

func (s *Server) subscribe() *session.Subscription {
	return s.Sessions.Subscribe(session.View{All: true}, eventBuffer)
}

// waitCaughtUp waits until everything that has happened was put into the outboxes:
// clients expect the events of a task before the answers about its end.
func (s *Server) waitCaughtUp(ctx context.Context) {
	told := make(chan struct{})
	select {
	case s.waiters <- told:
		<-told
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
		case told := <-s.waiters:
			n.encodePending(sub)
			close(told)
		}
	}
}

// encodePending retells what has come so far.
func (n *eventEncoder) encodePending(sub *session.Subscription) {
	for range len(sub.Events()) {
		if e, ok := <-sub.Events(); ok {
			n.encode(&e)
		}
	}
}

// eventEncoder retells events in the protocol's words. It belongs to one goroutine.
type eventEncoder struct {
	server *Server
	turns  map[turnID]*turn
}

// turnID names a task: its id is unique only within an account.
type turnID struct{ account, task string }

// turn is what was told of a task so far.
type turn struct {
	seq         int64 // of frames of the stream "agent"
	started     int64
	text        string    // of the message, so far
	pending     string    // what of it was not told yet
	sentAt      time.Time // when it last was
	lastDelta   string    // what the last delta of the chat said
	lastDeltaAt time.Time // of that delta
	touched     time.Time
}

// maxTurns bounds the tasks that are remembered; the one that was silent longest
// is forgotten, and goes on as if it were new.
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

// encode retells one event.
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
