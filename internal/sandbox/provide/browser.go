package provide

import (
	"context"

	"github.com/atoll-run/atoll/internal/sandbox"
)

// ProvideBrowser makes the browser's sandbox of a session ready. It has no workspace;
// nothing of the host is prepared for it.
func (a *Installation) ProvideBrowser(ctx context.Context, who Subject) (*ReadySandbox, error) {
	a.PruneIfDue(ctx)
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
	if _, err := a.chooseBackend(ctx, b); err != nil {
		return nil, &sandbox.ProvisionError{Name: b.Spec.Name, Step: "backend", Err: err}
	}
	return a.ensure(ctx, who, b, false)
}
