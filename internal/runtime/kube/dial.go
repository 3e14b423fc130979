package kube

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// dialsPerSecond is how many sessions one process opens in a second. An API server that
// was restarted has cut every one of them at once.
const dialsPerSecond = 20

// dialLimit spreads the opening of sessions over time.
type dialLimit struct {
	step time.Duration

	mu   sync.Mutex
	next time.Time
}

func newDialLimit(perSecond int) *dialLimit {
	return &dialLimit{step: time.Second / time.Duration(perSecond)}
}

// reserve returns when a session may be opened. The first ones may at once; those of a
// crowd come after another, at random points of their steps.
func (l *dialLimit) reserve(now time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next.Before(now) {
		l.next = now.Add(l.step)
		return now
	}
	turn := l.next.Add(rand.N(l.step)) //nolint:gosec // spreads load, decides nothing
	l.next = l.next.Add(l.step)
	return turn
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

func (i *Instance) dial(ctx context.Context) (net.Conn, error) {
	if pod := i.currentPod(); pod != nil {
		if s := i.runtime.liveSession(string(pod.UID)); s != nil {
			return s.open()
		}
	}
	pod, err := i.checkRunning(ctx)
	if err != nil {
		return nil, err
	}
	if err := pause(ctx, time.Until(i.runtime.dials.reserve(time.Now()))); err != nil {
		return nil, err
	}
	s, err := i.runtime.session(string(pod.UID), pod.Name)
	if err != nil {
		return nil, err
	}
	return s.open()
}

// liveSession returns the session to a pod; nil if there is none.
func (r *Runtime) liveSession(uid string) *session {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.sessions[uid]; s != nil && s.alive() {
		return s
	}
	return nil
}

// session returns the session to a pod, which is opened if there is none.
func (r *Runtime) session(uid, pod string) (*session, error) {
	c, err := r.cluster()
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.sessions[uid]; s != nil && s.alive() {
		return s, nil
	}
	s, err := openSession(c, pod)
	if err != nil {
		return nil, err
	}
	r.sessions[uid] = s
	return s, nil
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
