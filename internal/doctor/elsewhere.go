package doctor

import (
	"context"

	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// elsewhere reports whether the sandboxes of the default agent are on other machines: what
// this one can enforce says nothing about them.
func (d *Doctor) elsewhere() bool {
	p, err := d.Plan(provide.Subject{})
	return err == nil && p.Agent.Sandbox.Backend == provide.BackendKubernetes
}

// checkElsewhere asks the runtime what it finds where it makes sandboxes.
func (d *Doctor) checkElsewhere(ctx context.Context, p *plan.Plan, backend string) []Check {
	rt, err := d.Runtime(ctx, backend)
	if err != nil {
		return []Check{failedWith("engine", err)}
	}
	examiner, ok := rt.(sandbox.Examiner)
	if !ok {
		return gapChecks(rt.Check(ctx, p.Spec))
	}
	var checks []Check
	for _, f := range examiner.Examine(ctx, p.Spec) {
		checks = append(checks, Check{Name: f.Name, Status: CheckStatus(f.Level), Detail: f.Detail, Fix: f.Remedy})
	}
	return checks
}
