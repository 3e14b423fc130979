package service

import (
	"context"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
)

// ForSetup opens the egress that the configuration gives a sandbox, for the command that
// sets it up. Nil if it has none.
func (s *Service) ForSetup(ctx context.Context, spec *sandbox.Spec, m *machine.Machine) (sandbox.SetupEgress, error) {
	agent, err := s.Config.Resolve(spec.AgentID)
	if err != nil || policy.Networked(spec.Network) {
		return nil, nil //nolint:nilerr,nilnil // an agent that is not configured has no egress
	}
	p := &plan.Plan{Agent: agent, Spec: spec}
	half := policy.HalfIsolated
	if policy.NewRouter(agent.Sandbox).Paired() {
		p.Net = spec
	}
	if spec.NetworkedHalf {
		half = policy.HalfNetworked
	}
	c := ConfigOf(p, half)
	e, err := s.Open(ctx, &sandbox.Handle{Name: spec.Name, Machine: m}, p, Options{Config: &c, Account: spec.Account})
	if err != nil || e == nil {
		return nil, err
	}
	return e, nil
}
