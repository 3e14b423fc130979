package service

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/egress"
	"github.com/atoll-run/atoll/internal/egress/inject"
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
	Config  *config.Egress // as it is wanted, services included
	Account string
	// Grant is the open grant whose commands are served; nil opens one that ends with
	// the egress.
	Grant *grant.Grant
	Terms grant.Terms // of the grant that is opened; its end and its names may be missing
}

// Egress is the open egress of one grant in one sandbox. Close it. A nil Egress is none:
// its methods return nothing.
type Egress struct {
	grant    *grant.Grant
	own      bool // the grant was opened here
	server   *egress.Server
	services []*hostService
	env      map[string]string
	secrets  *inject.Set
	denials  denials
	fetch    *fetcher // nil without a server
	unwatch  func() bool
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

// Open opens egress in a sandbox. Without rules and services it returns nil.
func (s *Service) Open(ctx context.Context, box *sandbox.Handle, p *plan.Plan, o Options) (*Egress, error) {
	if !IsWanted(o.Config) {
		return nil, nil //nolint:nilnil // a nil Egress is none
	}
	if policy.Networked(networkOf(box, p)) {
		return nil, errhint.With(fmt.Errorf("sandbox %s has a network of its own, which egress rules do not bound", box.Name), `set sandbox.docker.network to "none"`)
	}
	g, own, err := s.grantFor(ctx, box, p, &o)
	if err != nil {
		return nil, err
	}
	e := &Egress{grant: g, own: own, env: map[string]string{}}
	if err := s.open(ctx, e, box, p, &o); err != nil {
		return nil, errors.Join(unsupported(err), e.Close())
	}
	e.unwatch = context.AfterFunc(g.Context(), e.end)
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
func (s *Service) open(ctx context.Context, e *Egress, box *sandbox.Handle, p *plan.Plan, o *Options) error {
	if err := e.openServices(ctx, s, box, o.Config.Services); err != nil {
		return err
	}
	if o.Config.Mode == config.EgressOff || o.Config.Mode == "" {
		return nil
	}
	rules, err := Compile(ctx, o.Config, p.Layout.AgentDir)
	if err != nil {
		return err
	}
	host, err := s.Outbound()
	if err != nil {
		return err
	}
	log, err := s.models.AuditLog()
	if err != nil {
		return err
	}
	if e.secrets, err = s.secrets(ctx, box, o.Config); err != nil {
		return err
	}
	maps.Copy(e.env, e.secrets.Environment())
	inspector, err := s.inspector(ctx, e, box, host, rules)
	if err != nil {
		return err
	}
	if o.Config.ProxyEnv {
		maps.Copy(e.env, proxyEnvironment())
	}
	e.server, err = egress.Open(ctx, egress.Options{
		Policy: rules, Inside: &inside{box.Machine, e.grant.ID()}, Outbound: host, Inspect: inspector,
		Audit: func(event *audit.EgressEvent) error { return log.Append(event) }, Subject: subjectOf(e.grant), Sandbox: box.Name,
		Denied: e.denials.add, Ask: s.asker(e.grant), Logger: s.Logger,
	})
	if err != nil {
		return err
	}
	e.fetch = &fetcher{server: e.server, host: host, log: func(event *audit.EgressEvent) error { return log.Append(event) }, subject: subjectOf(e.grant), sandbox: box.Name}
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

// Environment returns the variables that programs inside need for the egress.
func (e *Egress) Environment() map[string]string {
	if e == nil {
		return nil
	}
	return e.env
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
