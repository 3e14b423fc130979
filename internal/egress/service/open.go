package service

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/egress"
	"github.com/atoll-run/atoll/internal/egress/inject"
	"github.com/atoll-run/atoll/internal/egress/inspect"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
)

// grantLife is how long egress stays open that has no grant of its caller.
const grantLife = 24 * time.Hour

// Options say whose egress is opened.
type Options struct {
	// Config returns what is wanted, services included, of a plan whose agent has the
	// egress that is configured now. It is called again when the configuration changes.
	Config func(*plan.Plan) (*config.Egress, error)
	// Adjust, if set, changes the egress of an agent whose configuration was read again
	// to what the plan's agent has.
	Adjust  func(*config.Config, *config.Agent) error
	Account string
	// Grant is the open grant whose commands are served; nil opens one that ends with
	// the egress.
	Grant *grant.Grant
	Terms grant.Terms // of the grant that is opened; its end and its names may be missing
}

// Egress is the open egress of one grant in one sandbox. Close it. A nil Egress is none:
// its methods return nothing.
type Egress struct {
	service *Service
	box     *sandbox.Handle
	plan    *plan.Plan
	options Options
	grant   *grant.Grant
	own     bool // the grant was opened here
	server  *egress.Server
	denials denials
	fetch   *fetcher // nil without a server
	unwatch func() bool
	ctx     context.Context // ends when it is closed
	cancel  context.CancelFunc

	mu        sync.Mutex // held while rules change
	services  []*hostService
	env       map[string]string
	named     []config.NamedSecret // whose values secrets has
	secrets   *inject.Set
	inspector *inspect.Inspector
}

// ConfigOf returns the egress that the configuration gives a half of an agent's sandbox.
// Of two halves the networked one has it; where no mode is written, that is public.
func ConfigOf(p *plan.Plan, half policy.Half) config.Egress {
	e := p.Agent.Sandbox.Egress
	switch {
	case p.Net == nil:
	case half == policy.HalfIsolated:
		e.Mode, e.Allow, e.Services = config.EgressOff, nil, nil
	case e.ModeIsDefault():
		e.Mode = config.EgressPublic
	}
	return e
}

// IsWanted reports whether there is anything to open.
func IsWanted(c *config.Egress) bool {
	return c.Mode != config.EgressOff && c.Mode != "" || len(c.Services) > 0
}

// Of returns what opens the egress that the configuration gives a half of an agent's
// sandbox.
func Of(half policy.Half) func(*plan.Plan) (*config.Egress, error) {
	return func(p *plan.Plan) (*config.Egress, error) {
		c := ConfigOf(p, half)
		return &c, nil
	}
}

// Open opens egress in a sandbox. Without rules and services it returns nil. Its rules are
// those that the configuration has, also while it is open.
func (s *Service) Open(ctx context.Context, box *sandbox.Handle, p *plan.Plan, o Options) (*Egress, error) {
	s.Refresh(ctx)
	settings := s.now()
	c, err := o.Config(s.planNow(p, o.Adjust))
	if err != nil {
		return nil, err
	}
	if !IsWanted(c) {
		return nil, nil //nolint:nilnil // a nil Egress is none
	}
	if policy.Networked(networkOf(box, p)) {
		return nil, errhint.With(fmt.Errorf("sandbox %s has a network of its own, which egress rules do not bound", box.Name), `set sandbox.docker.network to "none"`)
	}
	g, own, err := s.grantFor(ctx, box, p, &o)
	if err != nil {
		return nil, err
	}
	e := &Egress{service: s, box: box, plan: p, options: o, grant: g, own: own}
	e.ctx, e.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if err := e.open(ctx, c); err != nil {
		return nil, errors.Join(unsupported(err), e.Close())
	}
	e.unwatch = context.AfterFunc(g.Context(), e.end)
	s.follow(e)
	if s.now() != settings { // they changed while it was being opened
		e.change(s.planNow(p, o.Adjust))
	}
	return e, nil
}

// networkOf is the network of the half of a plan that a sandbox is.
func networkOf(box *sandbox.Handle, p *plan.Plan) string {
	if p.Net != nil && box.Name == p.Net.Name {
		return p.Net.Network
	}
	return p.Spec.Network
}

// grantFor returns the grant of the caller, or opens one.
func (s *Service) grantFor(ctx context.Context, box *sandbox.Handle, p *plan.Plan, o *Options) (g *grant.Grant, own bool, err error) {
	if o.Grant != nil {
		return o.Grant, false, nil
	}
	terms := o.Terms
	terms.Account, terms.Agent, terms.Session = o.Account, p.Agent.ID, p.Session.Key
	if terms.Until.IsZero() {
		terms.Until = time.Now().Add(grantLife)
	}
	g, err = grant.NewGrants(box.Name, box.Machine, s.Locks).Open(ctx, &terms)
	return g, true, err
}

// open opens the parts.
func (e *Egress) open(ctx context.Context, c *config.Egress) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.setServices(ctx, c.Services); err != nil {
		return err
	}
	if c.Mode == config.EgressOff || c.Mode == "" {
		return nil
	}
	host, err := e.service.Outbound()
	if err != nil {
		return err
	}
	log, err := e.service.models.AuditLog()
	if err != nil {
		return err
	}
	rules, err := e.rules(ctx, c)
	if err != nil {
		return err
	}
	record := func(event *audit.EgressEvent) error { return log.Append(event) }
	e.server, err = egress.Open(ctx, egress.Options{
		Rules: rules, Inside: &inside{e.box.Machine, e.grant.ID()}, Outbound: host,
		Audit: record, Subject: subjectOf(e.grant), Sandbox: e.box.Name,
		Denied: e.denials.add, Ask: e.service.asker(e.grant), Logger: e.service.Logger,
	})
	if err != nil {
		return err
	}
	e.fetch = &fetcher{server: e.server, host: host, log: record, subject: subjectOf(e.grant), sandbox: e.box.Name}
	e.fetch.open()
	return nil
}

// unsupported says what to do about a guest that is older than egress.
func unsupported(err error) error {
	if errors.Is(err, machine.ErrUnsupported) {
		return errhint.With(err, "the sandbox was made by an older Atoll: make it anew with `atoll sandbox recreate`")
	}
	return err
}

func subjectOf(g *grant.Grant) audit.Subject {
	t := g.Terms()
	return audit.Subject{Account: t.Account, Agent: t.Agent, Session: t.Session, Run: t.Run, Attempt: t.Attempt, Graph: t.Graph, Trace: t.Trace}
}

// GrantID is what commands are started under that have the egress.
func (e *Egress) GrantID() string {
	if e == nil {
		return ""
	}
	return e.grant.ID()
}

// Err returns why the egress has ended, or nil while its grant is open.
func (e *Egress) Err() error {
	if e == nil {
		return nil
	}
	return e.grant.Err()
}

// Environment returns the variables that programs inside need for the egress.
func (e *Egress) Environment() map[string]string {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.env)
}

// Server returns the server of names; nil if there are only services.
func (e *Egress) Server() *egress.Server {
	if e == nil {
		return nil
	}
	return e.server
}

// end closes everything that the grant has opened inside.
func (e *Egress) end() {
	e.service.unfollow(e)
	e.cancel()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, service := range e.services {
		service.close()
	}
	if e.server != nil {
		_ = e.server.Close()
	}
}

// Close closes every connection and listener, and the grant if it was opened with the
// egress: its processes are ended then.
func (e *Egress) Close() error {
	if e == nil {
		return nil
	}
	if e.unwatch != nil {
		e.unwatch()
	}
	e.end()
	if e.own {
		return e.grant.Close()
	}
	return nil
}

// proxyEnvironment has the variables of programs that want a proxy.
func proxyEnvironment() map[string]string {
	url := fmt.Sprintf("http://127.0.0.1:%d", egress.ProxyPort)
	return map[string]string{
		"HTTP_PROXY": url, "HTTPS_PROXY": url, "http_proxy": url, "https_proxy": url, "ALL_PROXY": url, "all_proxy": url,
		"NO_PROXY": "localhost,127.0.0.1,::1", "no_proxy": "localhost,127.0.0.1,::1", "NODE_USE_ENV_PROXY": "1",
	}
}
