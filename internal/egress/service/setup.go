package service

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/egress/inspect"
	"github.com/atoll-run/atoll/internal/egress/rule"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
)

// ForSetup opens the egress that the configuration gives a sandbox, for the command that
// sets it up. Nil if it has none.
func (s *Service) ForSetup(ctx context.Context, spec *sandbox.Spec, m *machine.Machine) (sandbox.SetupEgress, error) {
	p, half := s.configured(spec)
	if p == nil {
		return nil, nil //nolint:nilnil // an agent that is not configured has no egress
	}
	e, err := s.Open(ctx, &sandbox.Handle{Name: spec.Name, Machine: m}, p, Options{Config: Of(half), Account: spec.Account})
	if err != nil || e == nil {
		return nil, err
	}
	return e, nil
}

// configured returns the plan of a spec as far as egress needs it, and which half it is of;
// nil if it can have no egress.
func (s *Service) configured(spec *sandbox.Spec) (*plan.Plan, policy.Half) {
	agent, err := s.now().Config.Resolve(spec.AgentID)
	if err != nil || policy.Networked(spec.Network) {
		return nil, ""
	}
	p := &plan.Plan{Agent: agent, Spec: spec}
	if policy.NewRouter(agent.Sandbox).Paired() {
		p.Net = spec
	}
	if spec.NetworkedHalf {
		return p, policy.HalfNetworked
	}
	return p, policy.HalfIsolated
}

// rootsFile has the certificates that programs of a sandbox trust, in its directory.
const rootsFile = "roots.pem"

// TrustedRoots returns the file with the certificates that programs of a new sandbox trust
// where no variable names another: the host's and the sandbox's own CA. It is "" where
// no rule has TLS opened.
func (s *Service) TrustedRoots(spec *sandbox.Spec) (string, error) {
	p, half := s.configured(spec)
	if p == nil {
		return "", nil
	}
	if c := ConfigOf(p, half); c.Mode == config.EgressOff || !rule.MayInspect(&c) {
		return "", nil
	}
	host, err := s.Outbound()
	if err != nil {
		return "", err
	}
	dir := s.EgressDir(spec.Name)
	i, err := inspect.Open(inspect.Options{Dir: dir, Host: host})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, rootsFile)
	return path, errors.Join(os.WriteFile(path, i.Bundle(), 0o644), os.Chmod(path, 0o644))
}
