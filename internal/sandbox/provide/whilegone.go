package provide

import (
	"context"
	"errors"
	"fmt"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
)

// WhileGone removes the stopped sandbox of a plan and runs f, which changes its
// overlays, while it cannot be made anew. It returns sandbox.ErrBusy if it runs.
func (a *Installation) WhileGone(ctx context.Context, p *plan.Plan, f func() error) error {
	if err := a.checkMountedElsewhere(ctx, p); err != nil {
		return err
	}
	for _, spec := range specs(p) {
		if err := a.checkStopped(ctx, spec.Name); err != nil {
			return err
		}
	}
	for _, spec := range specs(p) {
		if err := a.Manager.Remove(ctx, spec.Name, nil); err != nil && !errors.Is(err, sandbox.ErrNotFound) {
			return err
		}
		inner, name := f, spec.Name
		f = func() error { return a.IfGone(ctx, name, inner) }
	}
	return f()
}

// checkStopped refuses a sandbox that has processes.
func (a *Installation) checkStopped(ctx context.Context, name string) error {
	entry, err := a.Registry.Get(ctx, name)
	if errors.Is(err, sandbox.ErrNotFound) {
		return nil
	} else if err != nil {
		return err
	}
	alive, err := a.isAlive(ctx, entry)
	if err == nil && alive {
		err = errhint.With(fmt.Errorf("sandbox %q runs: %w", name, sandbox.ErrBusy), "stop it first: `atoll stop "+name+"`; its changes stay")
	}
	return err
}
