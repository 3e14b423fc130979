package sandboxes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/egress/rule"
	egress "github.com/atoll-run/atoll/internal/egress/service"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
)

// ErrEgress is a rule that goes beyond those of the operator.
var ErrEgress = errors.New("the operator's rules do not allow it")

// The bounds of the rules of a request.
const (
	maxRules     = 64
	maxRuleBytes = 1024
	portHTTPS    = 443
)

// checkRules returns what is wrong with the rules of a request by themselves.
func checkRules(q *api.SandboxEgress) error {
	if q == nil {
		return nil
	}
	if len(q.Allow) > maxRules {
		return &InvalidError{"/egress/allow", fmt.Sprintf("has more than %d rules", maxRules)}
	}
	for n, text := range q.Allow {
		at := fmt.Sprintf("/egress/allow/%d", n)
		if len(text) > maxRuleBytes {
			return &InvalidError{at, fmt.Sprintf("has more than %d bytes", maxRuleBytes)}
		}
		if err := (&config.Egress{}).AllowRule(text); err != nil {
			return &InvalidError{at, withHint(err)}
		}
	}
	return nil
}

// withHint is the text of an error with what to do about it.
func withHint(err error) string {
	if hint := errhint.Of(err); hint != "" {
		return err.Error() + "; " + hint
	}
	return err.Error()
}

// egressOf returns egress for exactly these rules; what else is configured, denials and
// limits among it, stays. Rules were checked before.
func egressOf(configured *config.Egress, rules []string) config.Egress {
	e := *configured
	e.Mode, e.Allow, e.Services = config.EgressOff, nil, nil
	e.ModeAt = config.Origin{Source: "call"}
	for _, text := range rules {
		_ = e.AllowRule(text) // checkRules has refused what cannot be read
	}
	return e
}

// configured returns the egress that the operator has written for agent api, or for E2B's
// clients.
func (s *Service) configured(e2b bool) (*config.Egress, error) {
	agent, err := s.In.Config.Resolve(config.APIAgent)
	if err != nil {
		return nil, err
	}
	if use := useEgress(e2b); use != nil {
		err = use(s.In.Config, agent)
	}
	return &agent.Sandbox.Egress, err
}

// useEgress returns what changes the egress of agent api to that of E2B's clients; nil for
// other sandboxes.
func useEgress(e2b bool) func(*config.Config, *config.Agent) error {
	if !e2b {
		return nil
	}
	return (*config.Config).UseE2BEgress
}

// checkRulesAllowed refuses rules that go beyond the operator's own.
func checkRulesAllowed(ctx context.Context, operators *config.Egress, rules []config.EgressRule) error {
	ceiling, err := egress.Compile(ctx, operators)
	if err != nil {
		return err
	}
	for i := range rules {
		if !covers(operators, ceiling, &rules[i]) {
			return errhint.With(fmt.Errorf("%s: %w", rules[i], ErrEgress), "ask the operator of the gateway for a rule, or leave it out")
		}
	}
	return nil
}

// covers reports whether the operator's rules allow all that a rule does: it is one of
// them, or it names one host whose connections they relay without looking into them.
func covers(written *config.Egress, ceiling *rule.Policy, r *config.EgressRule) bool {
	for i := range written.Allow {
		if written.Allow[i].String() == r.String() {
			return true
		}
	}
	if r.Preset != "" || r.Host == "" || r.Host[0] == '*' || r.Mode != "" || r.Secret != "" || r.Upgrade || r.WebSocket {
		return false
	}
	ports := r.Ports
	if len(ports) == 0 {
		ports = []int{portHTTPS}
	}
	for _, port := range ports {
		d := ceiling.Connect(r.Host, port)
		if !d.Allow || d.Action != rule.Splice && d.Action != rule.TCP {
			return false
		}
	}
	return true
}

// names are the names that a sandbox reaches, for the commands of a grant. A nil one is
// none.
type names struct {
	*egress.Egress
	grant *grant.Grant
}

// Close closes them, with the processes that have them.
func (n *names) Close() {
	if n != nil {
		_ = errors.Join(n.Egress.Close(), n.grant.Close()) // the processes are gone, or the sandbox is
	}
}

// environment are the variables that commands need for them.
func (n *names) environment() map[string]string {
	if n == nil {
		return nil
	}
	return n.Environment()
}

// grantID is what commands are started under.
func (n *names) grantID() string {
	if n == nil {
		return ""
	}
	return n.GrantID()
}

// wanted returns what a sandbox reaches, from what the operator has written: also later,
// when that has changed.
type wanted func(operators *config.Egress) (*config.Egress, error)

// openNames opens names in a sandbox, for as long as a grant can live. It is nil if there
// are none.
func (s *Service) openNames(ctx context.Context, r *Record, h *sandbox.Handle, p *plan.Plan, want wanted) (*names, error) {
	operators, err := s.configured(r.Details.E2B)
	if err != nil {
		return nil, err
	}
	if c, err := want(operators); err != nil || !egress.IsWanted(c) {
		return nil, err
	}
	terms := &grant.Terms{Account: r.Account, Agent: p.Agent.ID, Session: p.Session.Key, Until: time.Now().Add(grant.MaxLife - time.Minute)}
	g, err := grant.NewGrants(h.Name, h.Machine, s.In.Locks).Open(ctx, terms)
	if err != nil {
		return nil, err
	}
	e, err := s.Egress.Open(ctx, h, withEgress(p, operators), egress.Options{Config: want.of, Adjust: useEgress(r.Details.E2B), Account: r.Account, Grant: g})
	if err != nil || e == nil {
		return nil, errors.Join(err, g.Close())
	}
	return &names{e, g}, nil
}

// of is what a plan's sandbox reaches, whose agent has what the operator has written.
func (w wanted) of(p *plan.Plan) (*config.Egress, error) {
	operators := egress.ConfigOf(p, policy.HalfIsolated)
	return w(&operators)
}

// withEgress returns a plan whose agent has an egress.
func withEgress(p *plan.Plan, e *config.Egress) *plan.Plan {
	agent, changed := *p.Agent, *p
	agent.Sandbox.Egress, changed.Agent = *e, &agent
	return &changed
}

// openEgress opens the names that a sandbox reaches. It is nil if it reaches none.
func (s *Service) openEgress(ctx context.Context, r *Record, h *sandbox.Handle, p *plan.Plan) (*names, error) {
	if s.Egress == nil {
		return nil, nil //nolint:nilnil // nil reaches nothing
	}
	q := r.Details.Request.Egress
	return s.openNames(ctx, r, h, p, func(operators *config.Egress) (*config.Egress, error) {
		if q == nil {
			return operators, nil
		}
		e := egressOf(operators, q.Allow)
		if !r.Details.Bound {
			return &e, nil
		}
		return &e, checkRulesAllowed(context.WithoutCancel(ctx), operators, e.Allow)
	})
}

// reopenEgress is openEgress for a sandbox that was made before.
func (s *Service) reopenEgress(ctx context.Context, r *Record, h *sandbox.Handle) (*names, error) {
	p, err := s.In.Plan(s.subjectOf(r))
	if err != nil {
		return nil, err
	}
	return s.openEgress(ctx, r, h, p)
}
