package sandboxes

import (
	"context"
	"errors"
	"fmt"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
)

// ErrLimit is a limit above that of the operator.
var ErrLimit = errors.New("the operator's limit is lower")

// checkAllowed refuses what a caller that is bound to an account may not ask for: limits
// and rules beyond those that the operator has configured.
func (s *Service) checkAllowed(ctx context.Context, q *Request, p *plan.Plan) error {
	if !q.Bound {
		return nil
	}
	if q.Egress != nil {
		operators, err := s.configured(q.E2B)
		if err != nil {
			return err
		}
		if err := checkRulesAllowed(ctx, operators, p.Agent.Sandbox.Egress.Allow); err != nil {
			return err
		}
	}
	if q.Limits == nil {
		return nil
	}
	usual, err := s.In.Plan(s.subject(&Request{CreateSandbox: &api.CreateSandbox{}, Account: q.Account}, newID()))
	if err != nil {
		return err
	}
	return compareLimits(withDefaults(p), withDefaults(usual))
}

// withDefaults are the limits of a plan, with the defaults of those that it does not set.
func withDefaults(p *plan.Plan) sandbox.Limits {
	return p.Spec.Limits.WithDefaults(p.Spec.Limits.Defaults)
}

// compareLimits refuses limits that are above those of the operator, where there are any.
func compareLimits(asked, operators sandbox.Limits) error {
	for _, l := range []struct {
		name        string
		asked, most float64
	}{
		{"memoryBytes", float64(asked.Memory), float64(operators.Memory)},
		{"cpus", asked.CPUs, operators.CPUs},
		{"processes", float64(asked.Pids), float64(operators.Pids)},
		{"workspaceBytes", float64(asked.Workspace.Size), float64(operators.Workspace.Size)},
		{"workspaceFiles", float64(asked.Workspace.Files), float64(operators.Workspace.Files)},
	} {
		if l.most > 0 && l.asked > l.most {
			return fmt.Errorf("limits.%s: %v is above %v: %w", l.name, l.asked, l.most, ErrLimit)
		}
	}
	return nil
}
