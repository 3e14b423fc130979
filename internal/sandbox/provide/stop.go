package provide

import (
	"context"
	"errors"
	"os"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
)

// Running returns the commands that run in a sandbox now; none if it does not run.
func (a *Installation) Running(ctx context.Context, name string) (list []machine.Process, err error) {
	h, err := a.Manager.Attach(ctx, name)
	if errors.Is(err, sandbox.ErrNotFound) || errors.Is(err, sandbox.ErrNotRunning) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer h.Release()
	all, err := h.Machine.Processes(ctx)
	for i := range all {
		if all[i].Result == nil {
			list = append(list, all[i])
		}
	}
	return list, err
}

// Stop stops a sandbox and the commands in it. Unless forced it returns
// sandbox.ErrBusy if another process holds its use lock.
func (a *Installation) Stop(ctx context.Context, name string, force bool) error {
	if force {
		return a.Manager.ForceStop(ctx, name)
	}
	return a.Manager.Halt(ctx, name)
}

// RemoveSandbox removes a sandbox and, with discard, its private copy of the workspace.
// It returns the directory of the copy if that stays. Unless forced it returns
// sandbox.ErrBusy if another process holds its use lock.
func (a *Installation) RemoveSandbox(ctx context.Context, entry *sandbox.Entry, force, discard bool) (kept string, err error) {
	switch {
	case force:
		err = a.Manager.ForceRemove(ctx, entry.ContainerName)
	case discard:
		err = a.Manager.Discard(ctx, entry.ContainerName)
	default:
		err = a.Manager.Remove(ctx, entry.ContainerName, nil)
	}
	if err == nil && discard {
		err = a.IfGone(ctx, entry.ContainerName, func() error { return a.removeCopy(ctx, entry) })
	}
	return a.copyOf(entry), err
}

// copyOf is the directory of a sandbox's private copy, if there is one.
func (a *Installation) copyOf(entry *sandbox.Entry) string {
	agent, err := a.Config.Resolve(entry.AgentID)
	if err != nil {
		return ""
	}
	layout, err := plan.LayoutOf(a.Config, agent, entry.SessionKey)
	if err != nil || !layout.HasCopy() || layout.WorkspaceDir != entry.WorkspaceDir {
		return ""
	}
	if _, err := os.Stat(layout.WorkspaceDir); err != nil {
		return ""
	}
	return layout.WorkspaceDir
}
