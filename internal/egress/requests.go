package egress

import (
	"context"
	"errors"
	"net"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/egress/inspect"
	"github.com/atoll-run/atoll/internal/egress/rule"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/outbound"
)

// inspect has the inspector read the requests of the connection. TLS must be for
// the name before it is ended.
func (c *connection) inspect(client net.Conn) {
	by := c.server.rules.Load().Inspect
	if by == nil {
		c.refuse(nil, errors.New("requests cannot be inspected here"))
		return
	}
	t := &inspect.Target{Name: c.name, Port: c.port, Decide: c.judge, Record: c.recordRequest, Refused: c.recordRefusal, Dial: c.dial}
	if c.decision.Action == rule.HTTP {
		t.PlainUpstream = !c.decision.Upgrade
		_ = by.ServePlain(c.ctx, client, t)
		return
	}
	first, err := c.readHello(client)
	if err != nil {
		c.refuse(first, err)
		return
	}
	_ = by.ServeTLS(c.ctx, outbound.Prefixed(client, first), t)
}

// recordRefusal records why the inspector refuses the connection or one of its requests.
func (c *connection) recordRefusal(r *inspect.Refusal) {
	e := c.event(audit.EgressDenied)
	if r.Kind == inspect.LeakAttempt {
		e = c.event(audit.EgressLeak)
	}
	e.Method = r.Method
	c.recordAs(e, errhint.With(r, r.Hint))
}

// judge decides about one request. A person who allowed the connection has
// allowed its requests.
func (c *connection) judge(_ context.Context, method, path string) rule.Decision {
	for {
		rules := c.server.rules.Load()
		d := rules.Policy.Request(c.name, c.port, method, path)
		c.mu.Lock()
		d.Allow = d.Allow || d.Ask && c.asked
		c.request = &judged{method, path, d}
		c.mu.Unlock()
		if !d.Allow || c.server.rules.Load() == rules { // later changes find the decision
			return d
		}
	}
}

// recordRequest writes the record of a request that is about to be sent.
func (c *connection) recordRequest(method, _ string, d rule.Decision) error {
	e := c.event(audit.EgressRequest)
	e.Method, e.Rule = method, d.Rule
	return c.server.o.Audit(e)
}
