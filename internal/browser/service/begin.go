package service

import (
	"context"
	"errors"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// ErrNotStarted is returned to the tool where autoStart is false and no browser runs.
var ErrNotStarted = errhint.With(errors.New("the browser does not run, and sandbox.browser.autoStart leaves its start to a person"),
	"start it through the gateway: POST /api/v1/browsers; or set sandbox.browser.autoStart to true or lazy")

// Begin starts the browser of a subject and does not wait for it: the first call does. What
// goes wrong is said by that call, which starts it again.
func (s *Service) Begin(who provide.Subject) {
	r, err := s.Use(who)
	if err != nil {
		return
	}
	go func() {
		defer r.Release()
		if _, err := r.Browser(s.ctx); err != nil && s.ctx.Err() == nil {
			s.Logger.Warn("a browser did not start with its session", "sandbox", r.name, "error", err)
		}
	}()
}

// setManual says whether only a person starts the browser.
func (r *Session) setManual(manual bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.manual = manual
}

// wanted returns the browser for the tool, which does not start one where a person does.
func (r *Session) wanted(ctx context.Context) (*Started, error) {
	defer r.touch()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.manual && (r.browser == nil || r.over() != nil) {
		if isHeld, err := r.service.Locks.IsHeld(lockName(r.name)); err != nil || !isHeld || r.browser != nil {
			return nil, errors.Join(ErrNotStarted, err)
		}
	}
	return r.ready(ctx)
}
