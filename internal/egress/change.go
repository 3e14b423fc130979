package egress

import (
	"slices"

	"github.com/atoll-run/atoll/internal/egress/rule"
	"github.com/atoll-run/atoll/internal/outbound"
)

// judged is a request, and what was decided about it.
type judged struct {
	method, target string
	rule.Decision
}

// SetRules puts other rules in force. They count for everything that follows, and open
// connections that they do not allow as they are now are reset, with a record that says
// so. It returns when that is done.
func (s *Server) SetRules(r Rules) {
	before := s.rules.Swap(&r)
	for _, c := range s.connections() {
		c.keep(&r, before.Inspect != r.Inspect)
	}
}

// keep resets the connection unless the rules allow it as it is.
func (c *connection) keep(r *Rules, otherInspector bool) {
	d := c.judgeAgain(r, otherInspector)
	if d.Reason == "" {
		return
	}
	c.abort(d.Reason)
	c.server.o.Denied(c.exec, Denial{Name: c.name, Port: c.port, Reason: d.Reason, Hint: d.Hint})
}

// judgeAgain returns a decision with a reason if the connection cannot go on by other
// rules. One about which nothing is decided yet is decided by them anyway.
func (c *connection) judgeAgain(r *Rules, otherInspector bool) (refused rule.Decision) {
	const changed = "the rules changed while it was open: "
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.allowed || c.reason != "" || c.ctx.Err() != nil {
		return refused
	}
	d := r.Policy.Connect(c.name, c.port)
	switch reads := d.Action == rule.Inspect || d.Action == rule.HTTP; {
	case !d.Allow && (!d.Ask || !c.asked):
		refused.Reason, refused.Hint = changed+d.Reason, d.Hint
	case d.Action != c.decision.Action || d.Upgrade != c.decision.Upgrade || reads && otherInspector:
		refused.Reason = changed + "it is treated in another way now"
	case c.dialled && proxyFor(r.Policy, c.name) != c.proxy:
		refused.Reason = changed + "it takes another way now"
	case c.address.IsValid() && outbound.Public(d.Private...)(c.address) != nil:
		refused.Reason = changed + outbound.Public(d.Private...)(c.address).Error()
	case c.request != nil && c.request.Allow:
		if now := c.requestNow(r.Policy); now.Reason != "" {
			refused.Reason, refused.Hint = changed+now.Reason, now.Hint
		}
	}
	return refused
}

// requestNow returns a decision with a reason if the last request would not be sent as
// it was. The caller holds mu.
func (c *connection) requestNow(p *rule.Policy) (refused rule.Decision) {
	d := p.Request(c.name, c.port, c.request.method, c.request.target)
	switch {
	case !d.Allow && (!d.Ask || !c.asked):
		return d
	case c.request.WebSocket && !d.WebSocket:
		refused.Reason = "no other protocol may be spoken with this host"
	case !slices.Equal(d.Secrets, c.request.Secrets):
		refused.Reason = "the request has other secrets now"
	}
	return refused
}
