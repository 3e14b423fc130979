package runcmd

import (
	"context"

	"github.com/atoll-run/atoll/internal/agent/host"
	"github.com/atoll-run/atoll/internal/cli/dirsandbox"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/sandbox/directory"
)

// directory returns the git checkout that an agent works on whose caller names no other
// place, if the configuration is silent about sandboxes; nil if there is none. An agent
// with a branch has a repository of its own, one inside of a run is in its sandbox
// already, and the demonstration leaves checkouts alone.
func (e *env) directory(ctx context.Context, task *agentOrder) (*directory.Directory, error) {
	o := task.options
	if o.agent+o.sessionKey+o.account+o.scope+o.messages+task.branch != "" || o.events || o.hostTools || o.demo || dirsandbox.Checkout(e.Env) == nil {
		return nil, nil
	}
	a, err := e.Open(ctx)
	if err != nil {
		return nil, err
	}
	return dirsandbox.Default(e.Env, a), nil
}

// workOn has an agent work in the sandbox of a directory, in the directory that the verb
// was called in.
func (e *env) workOn(ctx context.Context, d *directory.Directory, order *host.Options) error {
	how, err := dirsandbox.CommandOptions(e.Env, e.Opened, d, "")
	if err != nil {
		return err
	}
	if d, err = dirsandbox.Record(ctx, e.Env, e.Opened, d, how.Image); err != nil {
		return err
	}
	order.Who, order.Below = e.Opened.DirectorySubject(d, how), d.Sub
	return nil
}

// changesOf collects what an agent changed in the overlay of a directory; nil if it
// worked on none. A failure changes nothing about how the agent ended.
func (e *env) changesOf(ctx context.Context, d *directory.Directory, access config.Access) *dirsandbox.Changes {
	if d == nil || access != config.AccessOverlay {
		return nil
	}
	changes, err := dirsandbox.CollectChanges(ctx, e.Env, d)
	if err != nil {
		e.Logger().WarnContext(ctx, "what changed is not known; see `atoll sync status`", "error", err)
	}
	return changes
}
