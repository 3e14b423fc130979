package serve

import (
	"context"
	"fmt"
	"slices"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/tool"
)

// restSandboxes are the installation's sandboxes, for the gateway's callers.
type restSandboxes struct {
	parts *Parts
	all   *sandbox.Listing
}

// List returns all of them, without their drift.
func (s restSandboxes) List(ctx context.Context) ([]api.Sandbox, error) {
	all, err := s.all.Within(ctx, 0)
	if err != nil {
		return nil, err
	}
	list := make([]api.Sandbox, 0, len(all))
	for _, l := range s.parts.Describe(all) {
		list = append(list, sandboxOf(&l))
	}
	return list, nil
}

// AddDrift adds the drift of sandboxes to what List returned of them.
func (s restSandboxes) AddDrift(list []api.Sandbox) {
	all := make([]provide.Listed, len(list))
	for i := range list {
		b := &list[i]
		all[i].Entry = &sandbox.Entry{ContainerName: b.ContainerName, SessionKey: b.SessionKey, AgentID: b.AgentID, WorkspaceDir: b.WorkspaceDir}
	}
	s.parts.AddDrift(all)
	for i := range list {
		list[i].Drift = driftOf(&all[i])
	}
}

// DriftDiffs returns how the behaviour files of a sandbox differ from their sources.
func (s restSandboxes) DriftDiffs(ctx context.Context, name string) (*api.DriftDiffs, error) {
	drift, files, err := s.parts.DriftDiffs(ctx, name)
	if err != nil {
		return nil, err
	}
	answer := &api.DriftDiffs{Files: []api.DriftDiff{}}
	for _, f := range files {
		answer.Files = append(answer.Files, api.DriftDiff{
			Path: f.Path, Diff: f.Diff, Note: f.Note,
			Modified: slices.Contains(drift.Modified, f.Path), Deleted: slices.Contains(drift.Deleted, f.Path), Stale: slices.Contains(drift.Stale, f.Path),
		})
	}
	return answer, nil
}

// Get returns one.
func (s restSandboxes) Get(ctx context.Context, name string) (*api.Sandbox, error) {
	found, err := s.parts.Status(ctx, name)
	if err != nil {
		return nil, err
	}
	shown := sandboxOf(found)
	return &shown, nil
}

func sandboxOf(l *provide.Listed) api.Sandbox {
	s := api.Sandbox{
		ContainerName: l.ContainerName, SessionKey: l.SessionKey, CreatedAtMs: l.CreatedAtMs, LastUsedAtMs: l.LastUsedAtMs, LastSavedAtMs: l.LastSavedAtMs, Image: l.Image, ConfigHash: l.ConfigHash,
		Kind: string(l.Kind), Phase: string(l.Phase), Backend: l.Backend, AgentID: l.AgentID, Account: l.Account, WorkspaceDir: l.WorkspaceDir,
		CDPPort: l.CDPPort, NoVNCPort: l.NoVNCPort, Imported: l.Imported, State: string(l.State), Running: l.Running, InUse: l.InUse, Problem: l.Problem, ImageMatch: l.ImageMatch,
	}
	s.Drift = driftOf(l)
	return s
}

// driftOf returns the drift of a sandbox, nil if there is none.
func driftOf(l *provide.Listed) *api.Drift {
	if l.Drift.None() {
		return nil
	}
	return (*api.Drift)(&l.Drift)
}

// Recreate removes a sandbox, so that the next use makes it anew.
func (s restSandboxes) Recreate(ctx context.Context, name string, discard bool) (*api.Recreated, error) {
	entry, err := s.parts.Registry.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	if provide.IsDockerContainer(entry) || entry.AgentID == config.APIAgent {
		return nil, fmt.Errorf("sandbox %q was not made for a session: %w", name, sandbox.ErrDenied)
	}
	done := s.parts.Recreate(ctx, entry, discard)
	return &api.Recreated{ContainerName: name, Moved: done.Report.Moved, Aside: done.Report.Aside, Discarded: done.Report.Discarded}, done.Err
}

// Prune removes what is idle or old.
func (s restSandboxes) Prune(ctx context.Context, workspaces bool) (*api.Pruned, error) {
	removals, err := s.parts.Prune(ctx, workspaces)
	if err != nil {
		return nil, err
	}
	answer := &api.Pruned{Removed: []api.Removal{}}
	for _, r := range removals {
		row := api.Removal{ContainerName: r.Entry.ContainerName, Reason: r.Reason}
		if r.Err != nil {
			row.Error = r.Err.Error()
		}
		answer.Removed = append(answer.Removed, row)
	}
	if err := s.parts.Doctor.EnginesAnswer(ctx); err != nil {
		answer.Silent = err.Error()
	}
	return answer, nil
}

// Verify finds out what a live sandbox keeps of its promises.
func (s restSandboxes) Verify(ctx context.Context, name string) (*api.Verifications, error) {
	found, err := s.parts.VerifyNamed(ctx, name)
	if err != nil {
		return nil, err
	}
	answer := &api.Verifications{Verified: []api.Verification{}}
	for _, f := range found {
		v := api.Verification{Sandbox: f.Sandbox, Backend: f.Backend, Image: f.Image, OK: f.OK, Checks: []api.Check{}}
		for _, c := range f.Checks {
			v.Checks = append(v.Checks, api.Check{Ring: c.Ring, Name: c.Name, Status: string(c.Status), Promised: c.Promised, Found: c.Found})
		}
		answer.Verified = append(answer.Verified, v)
	}
	return answer, nil
}

// Explain says what applies to a session. It shows no path of the host.
func (s restSandboxes) Explain(_ context.Context, q *api.ExplainQuery) (*api.Explanation, error) {
	p, err := s.parts.Plan(provide.Subject{AgentID: q.Agent, SessionKey: q.Session, Account: q.Account})
	if err != nil {
		return nil, err
	}
	box := &p.Agent.Sandbox
	x := &api.Explanation{
		AgentID: p.Agent.ID, SessionKey: p.Session.Key, Sandboxed: p.Sandboxed, Reason: p.Why, Mode: string(box.Mode), Scope: string(box.Scope),
		ScopeKey: p.ScopeKey, ContainerName: p.Spec.Name, Image: p.Spec.Image, Network: p.Spec.Network, WorkspaceAccess: string(box.WorkspaceAccess),
	}
	for _, f := range p.Findings {
		x.Refused = append(x.Refused, f.Field+": "+f.Message)
	}
	if q.Tool != "" {
		x.Tool = decideTool(p, q.Tool)
	}
	if q.Path != "" {
		x.Path = decidePath(p, q.Path)
	}
	return x, nil
}

// decideTool says whether a session may use a tool.
func decideTool(p *plan.Plan, name string) *api.ToolDecision {
	d := tool.Decide(p.Tools, name)
	return &api.ToolDecision{Name: name, Allowed: d.Allowed, Reason: d.Reason, Fix: d.Fix}
}

func decidePath(p *plan.Plan, input string) *api.PathDecision {
	path, err := p.Path(input)
	if err != nil {
		return &api.PathDecision{Input: input, Error: "there is no such path in the sandbox"}
	}
	return &api.PathDecision{Input: input, Inside: path.Container, Writable: path.Writable}
}
