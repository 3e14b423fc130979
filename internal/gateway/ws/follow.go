package ws

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/gateway/session"
)

// buffer is how many events of sessions may wait for us. We never wait for
// anybody, so it is only for bursts.
const buffer = 8192

// again is how long to wait before events are asked for again.
const again = time.Second

// follow passes on what happens in sessions, until the server ends. It sees all
// accounts and passes each event to its audience.
func (s *Server) follow(sub *session.Subscription) {
	for ; s.ctx.Err() == nil; sub = s.subscribe() {
		s.relay(sub)
		sub.Close()
		if s.ctx.Err() == nil && sub.Lost() {
			s.Logger.ErrorContext(s.ctx, "gateway events were lost: too many at once")
			s.meters.lost.With().Inc()
			s.hub.gap()
			continue
		}
		select { // the sessions are over before us
		case <-s.ctx.Done():
		case told := <-s.waiters:
			close(told)
		case <-time.After(again):
		}
	}
	sub.Close()
}

func (s *Server) subscribe() *session.Subscription {
	return s.Sessions.Subscribe(session.View{All: true}, buffer)
}

// caughtUp waits until everything that has happened was put into the outboxes:
// clients expect the events of a task before the answers about its end.
func (s *Server) caughtUp(ctx context.Context) {
	told := make(chan struct{})
	select {
	case s.waiters <- told:
		<-told
	case <-ctx.Done():
	case <-s.ctx.Done():
	}
}

func (s *Server) relay(sub *session.Subscription) {
	n := &narrator{server: s, turns: map[turnID]*turn{}}
	for {
		select {
		case <-s.ctx.Done():
			return
		case e, ok := <-sub.Events():
			if !ok {
				return
			}
			n.tell(&e)
		case told := <-s.waiters:
			n.tellAll(sub)
			close(told)
		}
	}
}

// tellAll retells what has come so far.
func (n *narrator) tellAll(sub *session.Subscription) {
	for range len(sub.Events()) {
		if e, ok := <-sub.Events(); ok {
			n.tell(&e)
		}
	}
}

// narrator retells events in the protocol's words. It belongs to one goroutine.
type narrator struct {
	server *Server
	turns  map[turnID]*turn
}

// turnID names a task: its id is unique only within an account.
type turnID struct{ account, task string }

// turn is what was told of a task so far.
type turn struct {
	seq     int64 // of frames of the stream "agent"
	started int64
	text    string    // of the message, so far
	unsaid  string    // what of it was not told yet
	saidAt  time.Time // when it last was
	shown   string    // what the last delta of the chat said
	at      time.Time // of that delta
	touched time.Time
}

// maxTurns bounds the tasks that are remembered; the one that was silent longest
// is forgotten, and goes on as if it were new.
const maxTurns = 10_000

func (n *narrator) turn(e *session.Event) *turn {
	id := turnID{e.Account, e.Task}
	t := n.turns[id]
	if t == nil {
		n.makeRoom()
		t = &turn{started: e.At.UnixMilli()}
		n.turns[id] = t
	}
	t.touched = e.At
	return t
}

func (n *narrator) makeRoom() {
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

// tell retells one event.
func (n *narrator) tell(e *session.Event) {
	switch e.Kind {
	case session.Accepted:
	case session.Changed:
		n.server.hub.tell(e.Account, []told{changed(e, "patch")})
	case session.Called, session.Returned:
		n.server.hub.tell(e.Account, n.turn(e).rest(e))
		n.server.hub.tellOrigin(e.Origin, e.Account, n.tool(e))
	case session.Ended:
		n.server.hub.tell(e.Account, n.end(e))
		delete(n.turns, turnID{e.Account, e.Task})
	case session.Started:
		n.server.hub.tell(e.Account, n.start(e))
	case session.Said:
		n.server.hub.tell(e.Account, n.say(e))
	case session.Used:
		n.server.hub.tell(e.Account, n.used(e))
	case session.Noticed, session.Prepared:
	}
}
