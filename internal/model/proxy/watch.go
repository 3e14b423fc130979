package proxy

import (
	"context"
	"sync"
	"time"
)

// watch looks, every so often, whether there is a reason to end a call to the
// upstream, and cancels the call with that reason. The caller of a stream that
// has gone is no such reason yet: the answer is read on for a while, for the
// count or to be replayed.
type watch struct {
	tick     time.Duration
	stopping context.Context // of the server
	cancel   context.CancelCauseFunc

	mu         sync.Mutex // held while looking, so that stop waits for it
	check      func(now time.Time) error
	timer      *time.Timer
	over       bool
	callerGone error     // why the caller of a stream has gone
	until      time.Time // when a call whose caller has gone is ended
}

// start begins to look. The function returns the reason to end the call, or nil.
func (w *watch) start(s *Server, cancel context.CancelCauseFunc, look func(now time.Time) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tick, w.stopping, w.cancel, w.check, w.over, w.callerGone = s.options.Tick, s.ctx, cancel, look, false, nil
	w.timer = time.AfterFunc(w.tick, w.fire)
}

// fire is run by the timer.
func (w *watch) fire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	now, next := time.Now(), w.tick
	switch {
	case w.callerGone == nil:
		if err := w.check(now); err != nil {
			w.cancel(err)
			return
		}
	case !now.Before(w.until) || w.stopping.Err() != nil:
		w.cancel(w.callerGone)
		return
	}
	if w.callerGone != nil {
		next = min(next, w.until.Sub(now))
	}
	w.timer.Reset(next)
}

// change replaces the function that looks.
func (w *watch) change(look func(now time.Time) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.check = look
}

// setCallerGone notes that the caller has gone, and when the call is to end. It is
// called with the lock held, or while nothing else uses the watch.
func (w *watch) setCallerGone(why error, until time.Time) { w.callerGone, w.until = why, until }

// continueUntil lets the call go on without its caller until a moment.
func (w *watch) continueUntil(why error, until time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.setCallerGone(why, until)
	if !w.over {
		w.timer.Reset(min(w.tick, time.Until(until)))
	}
}

// callerLeft returns why the caller has gone; nil if it has not.
func (w *watch) callerLeft() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.callerGone
}

// stop ends the call, and returns when nothing is looked at any more.
func (w *watch) stop() {
	if w.cancel == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.timer.Stop()
	w.cancel(nil)
}
