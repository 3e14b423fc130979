package backend

import (
	"context"
	"errors"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/sandbox/workspace"
)

// Sandboxes lists the gateway's sandboxes, and how many there are.
func (g Gateway) Sandboxes(ctx context.Context, limit int) ([]provide.Listed, int, error) {
	page, err := g.Client.Sandboxes(ctx, api.SandboxQuery{Limit: limit})
	if err != nil {
		return nil, 0, ProblemError(err)
	}
	list := make([]provide.Listed, 0, len(page.Sandboxes))
	for i := range page.Sandboxes {
		list = append(list, listed(&page.Sandboxes[i]))
	}
	return list, page.Total, nil
}

func listed(s *api.Sandbox) provide.Listed {
	l := provide.Listed{ImageMatch: s.ImageMatch, Status: sandbox.Status{
		State: sandbox.State(s.State), Running: s.Running, InUse: s.InUse, Problem: s.Problem, LastSavedAtMs: s.LastSavedAtMs,
		Entry: &sandbox.Entry{
			ContainerName: s.ContainerName, SessionKey: s.SessionKey, CreatedAtMs: s.CreatedAtMs, LastUsedAtMs: s.LastUsedAtMs, Image: s.Image, ConfigHash: s.ConfigHash,
			Kind: sandbox.Kind(s.Kind), Phase: sandbox.Phase(s.Phase), Backend: s.Backend, AgentID: s.AgentID, Account: s.Account, WorkspaceDir: s.WorkspaceDir,
			CDPPort: s.CDPPort, NoVNCPort: s.NoVNCPort, Imported: s.Imported,
		},
	}}
	if s.Drift != nil {
		l.Drift = workspace.Drift(*s.Drift)
	}
	return l
}

// Choose returns the sandboxes that a selector fits.
func (g Gateway) Choose(ctx context.Context, s provide.Selector) (chosen []*sandbox.Entry, err error) {
	list, _, err := g.Sandboxes(ctx, 0)
	if err != nil {
		return nil, err
	}
	wanted := g.Settings.Selects(s)
	for _, l := range list {
		if wanted(l.Entry) {
			chosen = append(chosen, l.Entry)
		}
	}
	return chosen, nil
}

// Recreate makes one sandbox anew.
func (g Gateway) Recreate(ctx context.Context, entry *sandbox.Entry, discard bool) provide.Recreated {
	result := provide.Recreated{Entry: entry}
	done, err := g.Client.Recreate(ctx, entry.ContainerName, discard)
	if p, ok := errors.AsType[*api.Problem](err); ok && p.Code == "sandbox_busy" {
		err = errors.Join(sandbox.ErrBusy, err)
	}
	if err != nil {
		result.Err, result.Error = ProblemError(err), err.Error()
		return result
	}
	result.Report = workspace.Report{Moved: done.Moved, Aside: done.Aside, Discarded: done.Discarded}
	return result
}

// Prune removes what is idle or old.
func (g Gateway) Prune(ctx context.Context, workspaces bool) (rows []Pruned, silent, err error) {
	done, err := g.Client.Prune(ctx, workspaces)
	if err != nil {
		return nil, nil, ProblemError(err)
	}
	rows = []Pruned{}
	for _, r := range done.Removed {
		rows = append(rows, Pruned{Name: r.ContainerName, Reason: r.Reason, Error: r.Error})
	}
	if done.Silent != "" {
		silent = errors.New(done.Silent)
	}
	return rows, silent, nil
}
