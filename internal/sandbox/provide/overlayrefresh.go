package provide

import (
	"context"
	"errors"

	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
)

// refreshStopped lets the agent begin with the base as it is now, where it has no
// changes of its own, if its sandbox does not run: what the host edited meanwhile
// is no conflict then, and secrets that are new are hidden too.
func (a *Installation) refreshStopped(ctx context.Context, p *plan.Plan, t *overlay.Tree, hide overlay.HideFunc) error {
	if t.IsNew() || t.Torn {
		return nil
	}
	refresh := func() error {
		_, err := t.Refresh(ctx, hide)
		return err
	}
	if p.Net != nil {
		own := refresh
		refresh = func() error { return a.ifStopped(ctx, p.Net.Name, own) }
	}
	return a.ifStopped(ctx, p.Spec.Name, refresh)
}

// ifStopped calls f, during which nothing starts the sandbox, unless the sandbox
// runs or is being changed.
func (a *Installation) ifStopped(ctx context.Context, name string, f func() error) error {
	err := a.Manager.Exclusively(name, func() error {
		entry, err := a.Registry.Get(ctx, name)
		if errors.Is(err, sandbox.ErrNotFound) {
			return f()
		} else if err != nil {
			return err
		}
		if alive, err := a.isAlive(ctx, entry); err != nil || alive {
			return err
		}
		return f()
	})
	if errors.Is(err, sandbox.ErrBusy) {
		return nil
	}
	return err
}
