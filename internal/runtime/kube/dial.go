package kube

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// dialsPerSecond is how many sessions one process opens in a second. An API server that
// was restarted has cut every one of them at once.
const dialsPerSecond = 20

// dialsAtOnce is how many sessions of one process are opened at the same time. An API server
// that is slow would not finish any in time if all were.
const dialsAtOnce = 10

// dialLimit spreads the opening of sessions over time.
type dialLimit struct {
	step time.Duration
	open chan struct{} // has an element for each session that is being opened
	turn chan struct{} // a lock: has one element while a dial waits for its time; the channel is first in, first out
	next time.Time     // guarded by turn

	count atomic.Int64 // turns that were taken
}

func newDialLimit(perSecond int) *dialLimit {
	return &dialLimit{step: time.Second / time.Duration(perSecond), open: make(chan struct{}, dialsAtOnce), turn: make(chan struct{}, 1)}
}

// start blocks until a session may be opened, which is being opened until done is called.
func (l *dialLimit) start(ctx context.Context) (done func(), err error) {
	select {
	case l.open <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	done = sync.OnceFunc(func() { <-l.open })
	if err := l.wait(ctx); err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// wait blocks until it is a session's time. A caller whose context ends uses none of the rate.
func (l *dialLimit) wait(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-l.turn }()
	if err := pause(ctx, time.Until(l.next)); err != nil {
		return err
	}
	l.count.Add(1)
	l.next = time.Now().Add(l.step/2 + rand.N(l.step)) //nolint:gosec // spreads load, decides nothing
	return nil
}

// Dial opens a connection to the guest: over the session of this process to the pod, or
// over a new one.
func (i *Instance) Dial(ctx context.Context) (net.Conn, error) {
	conn, err := i.dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("sandbox %q: %w", i.name, err)
	}
	return conn, nil
}

// dial waits for a session as long as ctx lives. The opening of one goes on without it, and is
// what the next dial waits for: after the API server was away, many wait for their turn longer
// than one dial may take.
func (i *Instance) dial(ctx context.Context) (net.Conn, error) {
	if s := i.liveSession(); s != nil {
		return s.open()
	}
	opened := i.opening.DoChan("", func() (any, error) { return i.openSession() })
	select {
	case got := <-opened:
		if got.Err != nil {
			return nil, got.Err
		}
		return got.Val.(*session).open() //nolint:forcetypeassert // it is what openSession returns
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: it waits for its turn, %d sessions are opened in a second: %w", machine.ErrTransport, dialsPerSecond, ctx.Err())
	}
}

// openSession opens a session to the pod when it is its turn, which lasts until the guest's
// bridge has answered.
func (i *Instance) openSession() (*session, error) {
	done, err := i.runtime.dials.start(i.runtime.ctx)
	if err != nil {
		return nil, machine.ErrClosed
	}
	s, err := i.sessionNow(i.runtime.ctx)
	if err != nil {
		done()
		return nil, asTransport(err)
	}
	go endTurn(done, s.awaitAnswer)
	return s, nil
}

// turnTimeout is how long the opening of one session counts among dialsAtOnce: processes of a
// sandbox can stop the guest's bridge, and sandboxes that do must not hold up the others.
const turnTimeout = 2 * time.Second

// endTurn calls done when await has returned, and after turnTimeout at the latest.
func endTurn(done, await func()) {
	late := time.AfterFunc(turnTimeout, done)
	defer late.Stop()
	await()
	done()
}

// askTimeout bounds the questions to the API server before a session is opened.
const askTimeout = 10 * time.Second

// sessionNow returns a session to the pod that the sandbox has now.
func (i *Instance) sessionNow(ctx context.Context) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if s := i.liveSession(); s != nil { // another instance has opened one meanwhile
		return s, nil
	}
	pod, err := i.checkRunning(ctx)
	if err != nil {
		return nil, err
	}
	epoch, err := i.takeOver(ctx)
	if err != nil {
		return nil, err
	}
	return i.runtime.session(string(pod.UID), pod.Name, epoch)
}

// asTransport marks the error of an API server that is away: the sandbox may be well.
func asTransport(err error) error {
	if errors.Is(err, sandbox.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", machine.ErrTransport, err)
	}
	return err
}

// liveSession returns the session to the pod that is known; nil if there is none.
func (i *Instance) liveSession() *session {
	pod := i.currentPod()
	if pod == nil {
		return nil
	}
	r := i.runtime
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.sessions[string(pod.UID)]; s != nil && s.alive() {
		return s
	}
	return nil
}

// session returns the session to a pod, which is opened if there is none.
func (r *Runtime) session(uid, pod string, epoch uint64) (*session, error) {
	c, err := r.cluster()
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.sessions[uid]; s != nil && s.alive() {
		return s, nil
	}
	if r.ctx.Err() != nil {
		return nil, machine.ErrClosed
	}
	s, err := openSession(c, pod, sessionOptions{epoch: epoch, idle: r.idleTimeout, ended: func(s *session) { r.forgetSession(uid, s) }})
	if err != nil {
		return nil, err
	}
	r.sessions[uid] = s
	r.watchTerminations(c)
	return s, nil
}

// forgetSession drops a session that has ended.
func (r *Runtime) forgetSession(uid string, s *session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sessions[uid] == s {
		delete(r.sessions, uid)
	}
}

// dropSession ends the session to a pod that is to go.
func (r *Runtime) dropSession(uid string) {
	r.mu.Lock()
	s := r.sessions[uid]
	delete(r.sessions, uid)
	r.mu.Unlock()
	if s != nil {
		s.close()
	}
}
