package service

import (
	"context"
	"errors"
	"time"

	"github.com/atoll-run/atoll/internal/browser"
	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/machine"
)

// rest counts the uses of a browser and holds the idle timer that freezes and ends it.
type rest struct {
	holds    int // calls and connections under way
	lastUsed time.Time
	timer    *time.Timer // nil before the first use
}

// othersLock is the name of the lock that processes share which use the browser of another.
func othersLock(name string) string { return "browser users " + name }

// hold keeps the browser from being frozen and ended until leave is called.
func (r *Session) hold() {
	r.service.mu.Lock()
	defer r.service.mu.Unlock()
	r.rest.holds++
}

func (r *Session) leave() {
	r.service.mu.Lock()
	r.rest.holds--
	r.service.mu.Unlock()
	r.touch()
}

// touch notes a use, from which the time without one is counted.
func (r *Session) touch() {
	r.service.mu.Lock()
	defer r.service.mu.Unlock()
	r.rest.lastUsed = time.Now()
	r.look(r.service.FreezeAfter)
}

// look has the session looked at after a time. The caller holds the lock of the service.
func (r *Session) look(after time.Duration) {
	if r.rest.timer == nil {
		r.rest.timer = time.AfterFunc(after, r.settle)
		return
	}
	r.rest.timer.Reset(after)
}

// settle freezes or ends the browser if it has been idle long enough, and sets the timer
// again.
func (r *Session) settle() {
	idle, runs := r.idle()
	unused, isFree := r.unused()
	switch {
	case !isFree || !runs:
		return // the next use looks again
	case idle > 0 && unused >= idle:
		r.endIdle()
		return
	case unused >= r.service.FreezeAfter:
		r.freeze()
	}
	wait := r.service.FreezeAfter
	if idle > 0 {
		wait = min(wait, idle-unused)
	}
	r.service.mu.Lock()
	defer r.service.mu.Unlock()
	r.look(max(wait, time.Millisecond))
}

// unused returns the time since the last use, and whether no use is under way.
func (r *Session) unused() (since time.Duration, isFree bool) {
	r.service.mu.Lock()
	defer r.service.mu.Unlock()
	return time.Since(r.rest.lastUsed), r.rest.holds == 0
}

// idle returns after which idle time a browser is ended, 0 is never, and whether there
// is one.
func (r *Session) idle() (most time.Duration, runs bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.box == nil {
		return 0, false
	}
	if r.service.Idle > 0 {
		return r.service.Idle, true
	}
	return time.Duration(r.settings().IdleMinutes) * time.Minute, true
}

// freeze holds the processes of a browser that was started here, unless somebody uses it.
func (r *Session) freeze() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, isFree := r.unused(); !isFree || r.frozen || r.browser == nil || !r.browser.IsOwn() || r.browser.Err() != nil {
		return
	}
	others, err := r.service.Locks.TryHold(othersLock(r.name))
	if err == nil {
		defer others.Release()
		err = r.browser.Freeze(context.Background())
		r.frozen = true // also if it failed half way
	}
	if err != nil && !errors.Is(err, filelock.ErrHeld) {
		r.service.Logger.Warn("a browser that nobody uses is not frozen", "sandbox", r.name, "error", err)
	}
}

// Frozen reports whether the browser's processes are held for want of use.
func (r *Session) Frozen() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.frozen
}

// Thaw lets a frozen browser go on.
func (r *Session) Thaw(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.thaw(ctx)
}

func (r *Session) thaw(ctx context.Context) error {
	if !r.frozen {
		return nil
	}
	if err := r.browser.Thaw(ctx); err != nil {
		return err
	}
	r.frozen = false
	return nil
}

// endIdle ends the browser if it is not used again.
func (r *Session) endIdle() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, isFree := r.unused(); !isFree {
		return
	}
	if err := r.stop(); err != nil {
		r.service.Logger.Warn("the end of a browser", "sandbox", r.name, "error", err)
	}
	r.service.mu.Lock()
	defer r.service.mu.Unlock()
	if r.users == 0 && r.service.open[r.name] == r {
		delete(r.service.open, r.name)
	}
}

// Join counts as a use of a browser that another process has started: it goes on, and is
// not frozen until the caller calls release.
func (s *Service) Join(ctx context.Context, name string, m *machine.Machine) (release func(), err error) {
	lock, err := s.Locks.Share(ctx, othersLock(name))
	if err != nil {
		return nil, err
	}
	if err := browser.Thaw(ctx, m); err != nil {
		lock.Release()
		return nil, err
	}
	return lock.Release, nil
}
