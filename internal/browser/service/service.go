// Package service keeps the browsers of sessions running: it makes their sandboxes ready,
// opens their egress, and starts Chromium or connects to the one that runs already.
package service

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/browser/actions"
	"github.com/atoll-run/atoll/internal/browser/driver"
	"github.com/atoll-run/atoll/internal/config"
	egress "github.com/atoll-run/atoll/internal/egress/service"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// FreezeAfter is the idle time after which a browser's processes are stopped.
const FreezeAfter = 2 * time.Minute

// Service has the browsers of an installation.
type Service struct {
	*provide.Installation
	egress *egress.Service
	// Drivers says who drives each browser: its agent or a person.
	Drivers driver.Drivers
	// FreezeAfter is the idle time after which a browser's processes are stopped, and
	// Idle, where it is not 0, when it is ended in place of sandbox.browser.idleMinutes.
	// They are set before the first use.
	FreezeAfter, Idle time.Duration

	ctx  context.Context // of starts in the background
	stop context.CancelFunc

	mu   sync.Mutex
	open map[string]*Session // by the name of the sandbox
}

// New returns the browsers of an installation.
func New(names *egress.Service) *Service {
	ctx, stop := context.WithCancel(context.Background())
	s := &Service{Installation: names.Installation, egress: names, FreezeAfter: FreezeAfter, ctx: ctx, stop: stop, open: map[string]*Session{}}
	s.Drivers.Locks = names.Locks
	return s
}

// EgressOf returns the egress of a browser.
func EgressOf(p *plan.Plan) (*config.Egress, error) {
	c := p.Agent.Sandbox.BrowserEgress()
	return &c, nil
}

// IsOpen reports whether a process of this machine keeps the browser of a sandbox running.
func (s *Service) IsOpen(name string) bool {
	held, err := s.Locks.IsHeld(lockName(name))
	return held && err == nil
}

// lockName names what the process holds that started the browser of a sandbox.
func lockName(name string) string { return "browser " + name }

// Use returns the browser session of a subject. It starts nothing yet. The browser is
// neither frozen nor ended for want of use until the caller calls Release.
func (s *Service) Use(who provide.Subject) (*Session, error) {
	p, err := s.Plan(who)
	if err != nil {
		return nil, err
	}
	b, err := p.Browser()
	if err != nil {
		return nil, err
	}
	r := s.use(b.Spec.Name, who)
	r.hold()
	return r, nil
}

// Opened returns the session of a browser that this process has, as Use does; nil if it
// has none.
func (s *Service) Opened(name string) *Session {
	s.mu.Lock()
	r := s.open[name]
	if r != nil {
		r.users++
	}
	s.mu.Unlock()
	if r != nil {
		r.hold()
	}
	return r
}

// use counts a use that does not keep the browser from being frozen and ended.
func (s *Service) use(name string, who provide.Subject) *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.open[name]
	if found == nil {
		found = &Session{service: s, who: who, name: name, taken: map[string]bool{}}
		found.driver = actions.NewDriver(found, &s.Drivers, name)
		s.open[name] = found
	}
	found.users++
	return found
}

// Release ends one use.
func (r *Session) Release() {
	r.leave()
	r.release()
}

// release ends a use that does not keep the browser from being frozen and ended.
func (r *Session) release() {
	r.service.mu.Lock()
	defer r.service.mu.Unlock()
	r.users--
}

// Close ends all browsers of this process.
func (s *Service) Close() error {
	s.stop()
	s.mu.Lock()
	all := s.open
	s.open = map[string]*Session{}
	s.mu.Unlock()
	var problems []error
	for _, r := range all {
		problems = append(problems, r.Stop())
	}
	return errors.Join(problems...)
}
