package sandboxcmd

import (
	"context"
	"path"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/cli/dirsandbox"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/sandbox/directory"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// directory returns the directory whose sandbox the command runs in; nil if a flag or
// the configuration names another sandbox, or the working directory is no checkout.
func (o *runOptions) directory(e *env, a *app.App) *directory.Directory {
	if o.remove || o.workspace+o.Agent+o.Session+o.Account+o.Scope != "" {
		return nil
	}
	return dirsandbox.Default(e.Env, a)
}

// provideDirectory makes the sandbox of a directory ready for the command, which runs
// in the directory that the verb was called in.
func (e *env) provideDirectory(ctx context.Context, a *app.App, o *runOptions, d *directory.Directory) (*provide.ReadySandbox, error) {
	how, err := dirsandbox.CommandOptions(e.Env, a, d, o.image)
	if err != nil {
		return nil, err
	}
	if d, err = dirsandbox.Record(ctx, e.Env, a, d, how.Image); err != nil {
		return nil, err
	}
	how.Access, how.Adjust, how.Exact = config.Access(o.access), o.adjust, o.adjusts()
	box, err := dirsandbox.Provide(ctx, e.Env, a, d, how)
	if err != nil {
		return nil, err
	}
	if e.IsTerminal && box.Plan.Agent.Sandbox.WorkspaceAccess == config.AccessOverlay && a.FirstTime(ctx, "run:"+d.ID) {
		e.Notice("this is the sandbox of " + console.Printable(d.Path) + ": what commands change in it is kept apart until you approve it (atoll sync status)")
	}
	if !path.IsAbs(o.dir) {
		o.dir = path.Join(d.Sub, o.dir)
	}
	return box, nil
}
