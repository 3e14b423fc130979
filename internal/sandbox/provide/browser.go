package provide

import (
	"context"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/sandbox/plan"

	"github.com/atoll-run/atoll/internal/sandbox"
)

// ProvideBrowser makes the browser's sandbox of a session ready. It has no workspace;
// nothing of the host is prepared for it.
func (a *Installation) ProvideBrowser(ctx context.Context, who Subject) (*ReadySandbox, error) {
	a.PruneIfDue(ctx)
	b, err := a.planBrowser(ctx, who)
	if err != nil {
		return nil, err
	}
	return a.ensure(ctx, who, b, false)
}

// planBrowser plans the browser's sandbox of a session and chooses its backend.
func (a *Installation) planBrowser(ctx context.Context, who Subject) (*plan.Plan, error) {
	p, err := a.Plan(who)
	if err != nil {
		return nil, err
	}
	if err := p.Refusal(); err != nil {
		return nil, err
	}
	b, err := p.Browser()
	if err != nil {
		return nil, err
	}
	a.preferBuilt(ctx, b)
	if _, err := a.chooseBackend(ctx, b); err != nil {
		return nil, &sandbox.ProvisionError{Name: b.Spec.Name, Step: "backend", Err: err}
	}
	return b, nil
}

// preferBuilt takes the browser's own image, where it was built, before the programs of
// this machine.
func (a *Installation) preferBuilt(ctx context.Context, p *plan.Plan) {
	if UsesHostPrograms(p.Agent) && a.ImportedImage(ctx, p.Spec.Image) != nil {
		p.Agent.Origins["sandbox.docker.image"] = config.Origin{Source: "derived", Path: "the image was built"}
	}
}
