// Package service keeps the browsers of sessions running: it makes their sandboxes ready,
// opens their egress, and starts Chromium or connects to the one that runs already.
package service

import (
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

// DefaultIdle is how long a browser that nobody uses keeps running.
const DefaultIdle = 30 * time.Minute

// Service has the browsers of an installation.
type Service struct {
	*provide.Installation
	egress *egress.Service
	// Drivers says who drives each browser: its agent or a person.
	Drivers driver.Drivers
	// Idle is how long a browser that nobody uses keeps running. It is set before the
	// first use.
	Idle time.Duration

	mu   sync.Mutex
	open map[string]*Session // by the name of the sandbox
}

// New returns the browsers of an installation.
func New(names *egress.Service) *Service {
	return &Service{Installation: names.Installation, egress: names, Idle: DefaultIdle, open: map[string]*Session{}}
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

// Use returns the browser session of a subject. It starts nothing yet. The caller calls
// Release.
func (s *Service) Use(who provide.Subject) (*Session, error) {
	p, err := s.Plan(who)
	if err != nil {
		return nil, err
	}
	b, err := p.Browser()
	if err != nil {
		return nil, err
	}
	return s.use(b.Spec.Name, who), nil
}

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
	if found.idle != nil {
		found.idle.Stop()
		found.idle = nil
	}
	return found
}

// Release ends one use. A browser that nobody uses is ended after a while.
func (r *Session) Release() {
	r.service.mu.Lock()
	defer r.service.mu.Unlock()
	if r.users--; r.users == 0 {
		r.idle = time.AfterFunc(r.service.Idle, r.endIdle)
	}
}

// endIdle ends the browser if it is not used again.
func (r *Session) endIdle() {
	r.service.mu.Lock()
	if r.users > 0 || r.service.open[r.name] != r {
		r.service.mu.Unlock()
		return
	}
	delete(r.service.open, r.name)
	r.service.mu.Unlock()
	if err := r.Stop(); err != nil {
		r.service.Logger.Warn("the end of a browser", "sandbox", r.name, "error", err)
	}
}

// Close ends all browsers of this process.
func (s *Service) Close() error {
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
