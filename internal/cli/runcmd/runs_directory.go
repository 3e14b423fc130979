package runcmd

import (
	"context"

	"github.com/atoll-run/atoll/internal/cli/backend"
	"github.com/atoll-run/atoll/internal/cli/dirsandbox"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/run/execute"
)

// runsFor returns what carries a run out. One that names no other place works, in a
// git checkout and with a configuration that is silent about sandboxes, on the
// checkout: in this process, which alone knows where it was called. OpenClaw has a
// workspace of its own everywhere.
func (e *env) runsFor(ctx context.Context, o *startOptions, task *execute.Task) (backend.Runs, error) {
	if o.agent+o.account+task.Branch != "" || o.variant == run.OpenClawVariant || dirsandbox.Checkout(e.Env) == nil {
		return backend.OpenRuns(ctx, e.Env)
	}
	a, err := e.Open(ctx)
	if err != nil {
		return nil, err
	}
	d := dirsandbox.Default(e.Env, a)
	if d == nil {
		return backend.OpenRuns(ctx, e.Env)
	}
	if task.Directory, err = dirsandbox.Record(ctx, e.Env, a, d, ""); err != nil {
		return nil, err
	}
	return backend.OpenRunsHere(ctx, e.Env)
}

// runChanges returns what waits of a run on a directory; nil if it was on none.
func runChanges(r *run.Receipt) *dirsandbox.Changes {
	if r.Changes == nil {
		return nil
	}
	return dirsandbox.RunChanges(r.ID, r.Changes)
}
