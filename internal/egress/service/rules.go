package service

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/egress"
	"github.com/atoll-run/atoll/internal/egress/inspect"
	"github.com/atoll-run/atoll/internal/egress/rule"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
)

// changeTimeout bounds how long other rules may take to be ready: secrets are read anew.
const changeTimeout = time.Minute

// rules returns the rules of a configuration, with what reads requests for them. Values of
// secrets are read only if their entries are others than before, and the inspector then is
// another one. The caller holds mu.
func (e *Egress) rules(ctx context.Context, c *config.Egress) (r egress.Rules, err error) {
	if r.Policy, err = Compile(ctx, c, e.plan.Layout.AgentDir); err != nil {
		return r, err
	}
	named, err := e.service.namedSecrets(c)
	if err != nil {
		return r, err
	}
	if e.inspector == nil || !isSame(named, e.named) {
		if e.server != nil { // the other rules count at once, secrets when they are read
			e.server.SetRules(r)
		}
		if err := e.openInspector(ctx, named); err != nil {
			return r, err
		}
	}
	r.Inspect = e.inspector
	return r, e.setEnvironment(ctx, c, r.Policy)
}

// isSame compares secrets, wherever they are written.
func isSame(a, b []config.NamedSecret) bool {
	return slices.EqualFunc(a, b, func(x, y config.NamedSecret) bool {
		x.At, y.At = config.Origin{}, config.Origin{}
		return reflect.DeepEqual(x, y)
	})
}

// openInspector makes what reads requests, with the values of secrets.
func (e *Egress) openInspector(ctx context.Context, named []config.NamedSecret) error {
	host, err := e.service.Outbound()
	if err != nil {
		return err
	}
	e.inspector = nil
	if e.secrets, err = e.service.readSecrets(ctx, e.box.Name, named); err != nil {
		return err
	}
	i, err := inspect.Open(inspect.Options{Dir: e.service.EgressDir(e.box.Name), Host: host, Secrets: e.secrets})
	if err != nil {
		return err
	}
	e.inspector, e.named = i, named
	return nil
}

// setEnvironment gives programs inside what they need for the rules. Those that run
// already keep the variables that they were started with.
func (e *Egress) setEnvironment(ctx context.Context, c *config.Egress, p *rule.Policy) error {
	host, err := e.service.Outbound()
	if err != nil {
		return err
	}
	env := e.secrets.Environment()
	certificates, err := e.writeCertificates(ctx, e.inspector, host, p.Inspects())
	if err != nil {
		return err
	}
	maps.Copy(env, certificates)
	if c.ProxyEnv {
		maps.Copy(env, proxyEnvironment())
	}
	e.env = env
	return nil
}

// change puts the rules in force that the configuration has now. Rules that cannot be
// used leave nothing allowed.
func (e *Egress) change(p *plan.Plan) {
	ctx, cancel := context.WithTimeout(e.ctx, changeTimeout)
	defer cancel()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ctx.Err() != nil {
		return
	}
	err := e.tryChange(ctx, p)
	if err == nil || e.ctx.Err() != nil {
		return
	}
	e.service.Logger.WarnContext(ctx, "the rules of egress were changed and cannot be used: nothing is allowed", "sandbox", e.box.Name, "error", err)
	if e.server != nil {
		e.server.SetRules(egress.Rules{Policy: rule.Nothing(), Inspect: e.inspector})
	}
}

func (e *Egress) tryChange(ctx context.Context, p *plan.Plan) error {
	c, err := e.options.Config(p)
	if err != nil {
		return err
	}
	if e.server != nil {
		r, err := e.rules(ctx, c)
		if err != nil {
			return err
		}
		e.server.SetRules(r)
	}
	return e.setServices(ctx, c.Services)
}
