package provide

import (
	"context"
	"errors"
	"fmt"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
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

// RefreshOverlay brings an overlay of a plan's sandbox up to date with its base, where
// the agent has not changed it, and returns how many files that were. The sandbox must
// be stopped.
func (s *Settings) RefreshOverlay(ctx context.Context, p *plan.Plan, t *overlay.Tree) (int, error) {
	for _, i := range p.Overlays() {
		if r := s.overlayRequest(p, i); r.Dir == t.Dir {
			return t.Refresh(ctx, r.Hide)
		}
	}
	return 0, overlay.ErrNone
}
