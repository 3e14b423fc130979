package provide

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/workspace"
)

// copyLock is shared from the preparation of a copy until its sandbox has a row.
func copyLock(dir string) string { return "copy:" + dir }

// HoldCopy keeps others from removing a copy that has no row yet.
func (a *Installation) HoldCopy(ctx context.Context, dir string) (release func(), err error) {
	held, err := a.Locks.Share(ctx, copyLock(dir))
	if err != nil {
		return nil, err
	}
	return held.Release, nil
}

// workspaceRoots are the directories that hold private copies: those of the
// configuration, and those of sandboxes that an earlier one made.
func (a *Installation) workspaceRoots(ctx context.Context) []string {
	roots := map[string]bool{filepath.Join(a.Paths.AtollState, "sandboxes"): true}
	for _, id := range a.Config.Agents() {
		if agent, err := a.Config.Resolve(id); err == nil {
			roots[agent.Sandbox.WorkspaceRoot] = true
		}
	}
	entries, err := a.Registry.List(ctx, 0)
	if err != nil {
		entries = nil // the configured roots are looked at all the same
	}
	for _, e := range entries {
		if isCopy(e) {
			roots[filepath.Dir(e.WorkspaceDir)] = true
		}
	}
	return slices.Sorted(maps.Keys(roots))
}

// isCopy tells whether a sandbox worked in a private copy, which is named after
// its scope key.
func isCopy(e *sandbox.Entry) bool {
	return !e.Imported && e.WorkspaceDir != "" && filepath.Base(e.WorkspaceDir) == policy.DirName(e.SessionKey)
}

// sweep finishes removals of copies that a crash interrupted.
func (a *Installation) sweep(ctx context.Context) {
	for _, root := range a.workspaceRoots(ctx) {
		if err := workspace.Sweep(ctx, root); err != nil {
			a.Logger.WarnContext(ctx, "leftovers of workspaces not removed", "root", root, "error", err)
		}
	}
}

// leftCopies are the private copies that no sandbox uses, as entries.
func (a *Installation) leftCopies(ctx context.Context) ([]*sandbox.Entry, error) {
	entries, err := a.Registry.List(ctx, 0)
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	for _, e := range entries {
		used[e.WorkspaceDir] = true
	}
	var left []*sandbox.Entry
	for _, root := range a.workspaceRoots(ctx) {
		copies, err := workspace.Copies(root)
		if err != nil {
			return nil, err
		}
		for _, l := range copies {
			if !used[l.SandboxDir] {
				left = append(left, a.entryOfCopy(l))
			}
		}
	}
	return left, nil
}

// outdatedCopies are the copies without a sandbox whose seed files differ from
// the agent workspace; with all, every copy without a sandbox.
func (a *Installation) outdatedCopies(ctx context.Context, all bool) (list []*sandbox.Entry, err error) {
	left, err := a.leftCopies(ctx)
	if err != nil {
		return nil, err
	}
	for _, e := range left {
		now, agent, err := a.layoutNow(e)
		if all || err == nil && agent != nil && !a.drift(new(workspace.DriftReader), agent, e).None() && now.WorkspaceDir == e.WorkspaceDir {
			list = append(list, e)
		}
	}
	return list, nil
}

// entryOfCopy describes a copy as the sandbox that it was made for.
func (a *Installation) entryOfCopy(l workspace.Layout) *sandbox.Entry {
	e := &sandbox.Entry{
		ContainerName: l.Slug, SessionKey: l.ScopeKey, AgentID: scopeAgent(l.ScopeKey), WorkspaceDir: l.SandboxDir,
		Kind: sandbox.KindSandbox, Phase: sandbox.PhaseReady,
	}
	e.Account, _ = policy.ScopeAccount(l.ScopeKey)
	if agent, err := a.Config.Resolve(e.AgentID); err == nil && l.ScopeKey != "" {
		if name, err := policy.ContainerName(agent.Sandbox.Docker.ContainerPrefix, l.ScopeKey); err == nil {
			e.ContainerName = name
		}
	}
	return e
}

// scopeAgent is the agent of a scope key; "" if several share it.
func scopeAgent(scopeKey string) string {
	_, key := policy.ScopeAccount(scopeKey)
	rest, ok := strings.CutPrefix(key, "agent:")
	if !ok {
		return ""
	}
	id, _, _ := strings.Cut(rest, ":")
	return id
}

// removeLeftCopies removes the private copies that no sandbox uses.
func (a *Installation) removeLeftCopies(ctx context.Context) ([]sandbox.Removal, error) {
	left, err := a.leftCopies(ctx)
	if err != nil {
		return nil, err
	}
	var done []sandbox.Removal
	for _, e := range left {
		err := a.ifUnused(ctx, e.WorkspaceDir, func() error { return a.removeCopy(ctx, e) })
		if !errors.Is(err, sandbox.ErrBusy) {
			done = append(done, sandbox.Removal{Entry: e, Reason: "a private copy that no sandbox used", Err: err})
		}
	}
	return done, nil
}

// removeTemporary removes copies that should have ended with their sandbox, and
// the sandbox too if there is one: the process that was to remove them was killed.
func (a *Installation) removeTemporary(ctx context.Context) (done []sandbox.Removal) {
	for _, root := range a.workspaceRoots(ctx) {
		copies, err := workspace.Temporaries(root)
		if err != nil {
			a.Logger.WarnContext(ctx, "temporary copies not found", "root", root, "error", err)
		}
		for _, l := range copies {
			done = append(done, a.endTemporary(ctx, l)...)
		}
	}
	return append(done, a.removeTemporaryOverlays(ctx)...)
}

// leftByKilled is why a temporary sandbox is removed.
const leftByKilled = "left by a killed command that was to remove it"

// endTemporary removes one temporary copy with its sandboxes, unless in use.
func (a *Installation) endTemporary(ctx context.Context, l workspace.Layout) (done []sandbox.Removal) {
	users, err := a.Registry.InWorkspace(ctx, l.SandboxDir)
	if err != nil || slices.ContainsFunc(users, isPooled) {
		return nil
	}
	for _, e := range users {
		err := a.Manager.Discard(ctx, e.ContainerName)
		if errors.Is(err, sandbox.ErrBusy) {
			return done
		}
		done = append(done, sandbox.Removal{Entry: e, Reason: leftByKilled, Err: err})
	}
	err = a.ifUnused(ctx, l.SandboxDir, func() error { return workspace.Remove(ctx, l) })
	if len(users) == 0 && !errors.Is(err, sandbox.ErrBusy) {
		done = append(done, sandbox.Removal{Entry: a.entryOfCopy(l), Reason: leftByKilled, Err: err})
	}
	return done
}

// isPooled reports whether a sandbox waits in a pool, or is made or removed for one.
func isPooled(e *sandbox.Entry) bool { return e.Kind == sandbox.KindPool }

// ifUnused runs f, which removes a copy, while no sandbox can be made for it.
// ErrBusy if there is one, or one is being made.
func (a *Installation) ifUnused(ctx context.Context, dir string, f func() error) error {
	return a.whileNoneIsMade(dir, func() error {
		users, err := a.Registry.InWorkspace(ctx, dir)
		if err != nil {
			return err
		}
		if len(users) > 0 {
			return sandbox.ErrBusy
		}
		return f()
	})
}

// whileNoneIsMade runs f while no sandbox can be made for a directory. ErrBusy if one
// is being made.
func (a *Installation) whileNoneIsMade(dir string, f func() error) error {
	held, err := a.Locks.TryHold(copyLock(dir))
	if errors.Is(err, filelock.ErrHeld) {
		return sandbox.ErrBusy
	} else if err != nil {
		return err
	}
	defer held.Release()
	return f()
}

// removeCopy removes the private copy of a sandbox that is gone.
func (a *Installation) removeCopy(ctx context.Context, entry *sandbox.Entry) error {
	if entry.Kind == sandbox.KindBrowser {
		return a.removeProfile(entry)
	}
	if shared, err := a.Registry.SharesWorkspace(ctx, entry); shared || err != nil {
		return err // the other half still works there
	}
	_, err := a.discardOld(ctx, entry, true)
	return err
}

// discardOld wipes the copy of a sandbox if that is asked for, whatever the
// configuration says of it now.
func (a *Installation) discardOld(ctx context.Context, entry *sandbox.Entry, discard bool) (workspace.Report, error) {
	layout, ok := workspace.CopyAt(entry.WorkspaceDir)
	if !ok || !discard || entry.SessionKey != "" && !isCopy(entry) {
		return workspace.Report{}, nil
	}
	if err := workspace.Remove(ctx, layout); err != nil {
		return workspace.Report{Discarded: true}, err
	}
	return workspace.Report{Discarded: true}, a.removeVolume(ctx, entry)
}

// backendOf is the backend of an entry; that of its agent, if it was made of a copy.
func (a *Installation) backendOf(entry *sandbox.Entry) string {
	if entry.Backend != "" {
		return entry.Backend
	}
	agent, err := a.Config.Resolve(entry.AgentID)
	if err != nil {
		return ""
	}
	return agent.Sandbox.Backend
}

// removeVolume removes the volume on which a cluster keeps the copy of a sandbox, when the
// sandbox and its copy on this host are gone. Where the configuration asks for no volumes, it
// may have asked for them before; what is not removed then is left to the next repair.
func (a *Installation) removeVolume(ctx context.Context, entry *sandbox.Entry) error {
	if a.backendOf(entry) != BackendKubernetes {
		return nil
	}
	rt, err := a.Manager.Runtime(ctx, BackendKubernetes)
	if s, ok := rt.(sandbox.Sweeper); ok && err == nil {
		err = s.Sweep(ctx, entry.RuntimeName())
	}
	if settings, _ := a.Config.Kubernetes().Settings(); err != nil && settings.WorkspaceVolume == nil {
		a.Logger.WarnContext(ctx, "not looked for the volume of a copy; `atoll sandbox prune` does it", "sandbox", entry.ContainerName, "error", err)
		return nil
	}
	return err
}

// isTemporary tells whether a copy ends with its sandbox.
func isTemporary(entry *sandbox.Entry) bool {
	copies, err := workspace.Temporaries(filepath.Dir(entry.WorkspaceDir))
	return err == nil && slices.ContainsFunc(copies, func(l workspace.Layout) bool { return l.SandboxDir == entry.WorkspaceDir })
}

// forgetImported drops the rows of old registries whose containers do not exist
// any more.
func (a *Installation) forgetImported(ctx context.Context) []sandbox.Removal {
	entries, err := a.Registry.List(ctx, 0)
	if err != nil {
		return nil
	}
	var done []sandbox.Removal
	for _, e := range entries {
		if e.Imported && a.isGone(ctx, e) {
			done = append(done, sandbox.Removal{Entry: e, Reason: "its container is gone", Err: a.Manager.Remove(ctx, e.ContainerName, nil)})
		}
	}
	return done
}

// isGone reports whether the engine says that there is no such container.
func (a *Installation) isGone(ctx context.Context, e *sandbox.Entry) bool {
	rt, err := a.Runtime(ctx, e.Backend)
	if err != nil {
		return false
	}
	_, err = rt.Open(ctx, e.RuntimeName())
	return errors.Is(err, sandbox.ErrNotFound)
}
