package sandboxes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// keepOpen is how long the connection to a sandbox stays open after its last use, so
// that the next use need not make one.
const keepOpen = 10 * time.Second

// live is a sandbox that this process has a connection to.
type live struct {
	id      string
	machine *machine.Machine
	release func()
	names   *names          // nil if it reaches nothing
	brief   bool            // it is released with its last user: others change the sandbox
	ctx     context.Context // ends when the sandbox is ended; everything in it does
	end     context.CancelCauseFunc
	users   int
	idle    *time.Timer   // closes it; nil while there are users
	unused  chan struct{} // closed when it has ended and users is 0
	ended   bool
}

// Inside is one use of a running sandbox.
type Inside struct {
	*Record
	Machine *machine.Machine
	Ctx     context.Context // ends with the caller's context, the sandbox or the service
	service *Service
	live    *live
	leave   func()
}

// Leave ends the use.
func (i *Inside) Leave() { i.leave() }

// Explain returns the reason for a failure of the machine. After one that a new
// connection may mend, the next user makes one.
func (i *Inside) Explain(err error) error {
	switch {
	case err == nil:
		return nil
	case i.live.ctx.Err() != nil:
		return context.Cause(i.live.ctx)
	case errors.Is(err, machine.ErrLost) || errors.Is(err, machine.ErrBroken) || errors.Is(err, machine.ErrClosed):
		i.service.mu.Lock()
		i.service.dropLocked(i.live)
		i.service.mu.Unlock()
		if state, stateErr := i.service.In.Manager.State(context.WithoutCancel(i.Ctx), i.Name); stateErr == nil && state != sandbox.StateRunning {
			return ErrStopped
		}
	}
	return err
}

// handle is a sandbox in use, of package sandbox or provide.
type handle interface{ Release() }

// connection is a sandbox in use with its egress, if it has one.
type connection struct {
	handle
	names *names
}

// Release closes the egress, with the processes that have it, and ends the use.
func (c *connection) Release() {
	c.names.Close()
	c.handle.Release()
}

// Enter returns a running sandbox to work in.
func (s *Service) Enter(ctx context.Context, r *Record) (*Inside, error) {
	if r.Phase != Ready {
		return nil, ErrEnding
	}
	if l := s.join(r.ID); l != nil {
		return s.inside(ctx, r, l), nil
	}
	h, err := s.In.Manager.Attach(ctx, r.Name)
	switch {
	case errors.Is(err, sandbox.ErrNotFound):
		return nil, fmt.Errorf("%w any more", ErrNotFound)
	case errors.Is(err, sandbox.ErrNotRunning):
		return nil, ErrStopped
	case err != nil:
		return nil, err
	}
	var reached *names
	if !r.IsOfAgent() {
		reached, err = s.reopenEgress(ctx, r, h)
	}
	if err != nil {
		h.Release()
		return nil, err
	}
	l := s.add(r, h.Machine, &connection{h, reached})
	if l == nil {
		return nil, ErrEnding
	}
	return s.inside(ctx, r, l), nil
}

// keep makes the connection to a sandbox that was just made the one that later users
// join.
func (s *Service) keep(r *Record, m *machine.Machine, c *connection) {
	if l := s.add(r, m, c); l != nil {
		s.leave(l)
	}
}

// join adds a user to the connection that there is; nil if there is none.
func (s *Service) join(id string) *live {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.live[id]
	if l == nil || l.ended {
		return nil
	}
	if l.users++; l.users == 1 && l.idle != nil {
		l.idle.Stop()
		l.idle = nil
	}
	return l
}

// add makes a connection the one that later users join, with one user. It releases the
// connection and returns nil if the service is closed or the sandbox is being ended.
func (s *Service) add(r *Record, m *machine.Machine, c *connection) *live {
	l, added := s.addOrJoin(r, m, c)
	if !added {
		c.Release()
	}
	return l
}

// addOrJoin is add without the release of a connection that is not needed.
func (s *Service) addOrJoin(r *Record, m *machine.Machine, c *connection) (_ *live, added bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return nil, false
	}
	if old := s.live[r.ID]; old != nil {
		if old.ended {
			return nil, false
		}
		old.users++ // another was quicker
		if old.idle != nil {
			old.idle.Stop()
			old.idle = nil
		}
		return old, false
	}
	ctx, end := context.WithCancelCause(s.ctx)
	l := &live{id: r.ID, machine: m, release: c.Release, names: c.names, brief: r.IsOfAgent(), ctx: ctx, end: end, users: 1, unused: make(chan struct{})}
	s.live[r.ID] = l
	if c.names != nil {
		context.AfterFunc(c.names.grant.Context(), func() { s.drop(l) })
	}
	return l, true
}

// inside returns one user's share of a connection.
func (s *Service) inside(ctx context.Context, r *Record, l *live) *Inside {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(l.ctx, func() { cancel(context.Cause(l.ctx)) })
	return &Inside{Record: r, Machine: l.machine, Ctx: ctx, service: s, live: l, leave: sync.OnceFunc(func() {
		stop()
		cancel(context.Canceled)
		s.leave(l)
	})}
}

func (s *Service) leave(l *live) {
	if s.isLast(l) {
		l.release()
		close(l.unused)
	}
}

// isLast takes a user away, and reports whether it was the last of a connection that
// has ended.
func (s *Service) isLast(l *live) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.users--; l.users > 0 || l.ended {
		return l.users == 0
	}
	if l.brief {
		s.dropLocked(l)
		return true
	}
	if l.names == nil { // what has egress keeps it, and with it its connection
		l.idle = time.AfterFunc(keepOpen, func() { s.closeIdle(l) })
	}
	return false
}

// closeIdle closes a connection whose last use was keepOpen ago.
func (s *Service) closeIdle(l *live) {
	s.mu.Lock()
	idle := l.users == 0 && !l.ended
	if idle {
		s.dropLocked(l)
	}
	s.mu.Unlock()
	if idle {
		l.release()
	}
}

// drop takes a connection away from later users, which make another one, because the
// grant of its egress has ended. Its last user releases it.
func (s *Service) drop(l *live) {
	s.mu.Lock()
	mine, used := !l.ended, l.users > 0
	if mine {
		s.dropLocked(l)
	}
	s.mu.Unlock()
	if mine && !used {
		l.release()
	}
}

// close ends everything that is done in a sandbox over this process, and returns when
// it has ended.
func (s *Service) close(l *live) {
	s.mu.Lock()
	mine := !l.ended
	if mine {
		s.dropLocked(l)
		l.users++ // until the end of this function
	}
	s.mu.Unlock()
	if !mine {
		return
	}
	l.end(ErrEnding)
	s.leave(l)
	<-l.unused
}

// dropLocked takes a connection away from later users. s.mu is held.
func (s *Service) dropLocked(l *live) {
	l.ended = true
	if l.idle != nil {
		l.idle.Stop()
	}
	if s.live[l.id] == l {
		delete(s.live, l.id)
	}
}

// closeID is close for the connection of an id, if there is one.
func (s *Service) closeID(id string) {
	s.mu.Lock()
	l := s.live[id]
	s.mu.Unlock()
	if l != nil {
		s.close(l)
	}
}
