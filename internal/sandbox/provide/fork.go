package provide

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/hostpath/clone"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
	"github.com/atoll-run/atoll/internal/sandbox/workspace"
)

// Forked is a sandbox that was made with the files of another.
type Forked struct {
	Name       string   `json:"name"`
	SessionKey string   `json:"sessionKey"`
	From       string   `json:"from"`
	Image      string   `json:"image"` // that both are made of
	Workspace  string   `json:"workspace"`
	Notices    []string `json:"notices"`
}

// Fork makes a sandbox with the files of another: those in its root, and its
// private copy of the workspace. It belongs to a session of the same agent, a
// new one if none is named, whatever the configured scope: else the two would
// be one sandbox.
func (a *Installation) Fork(ctx context.Context, from, session string, stop bool) (Forked, error) {
	entry, err := a.named(ctx, from)
	if err != nil {
		return Forked{}, err
	}
	if entry.AgentID == config.APIAgent {
		return Forked{}, errhint.With(fmt.Errorf("sandbox %q was made by a program: %w", from, sandbox.ErrUnsupported), "keep its files with `atoll snapshot`, and make another of that template")
	}
	who, err := a.Find(ctx, entry.ContainerName)
	if err != nil {
		return Forked{}, err
	}
	source, err := a.Plan(who)
	if err != nil {
		return Forked{}, err
	}
	if source.Layout.Access == config.AccessOverlay || a.OverlayOf(entry) != "" {
		return Forked{}, errhint.With(fmt.Errorf("sandbox %q has its changes in an overlay, which cannot be forked: %w", source.Spec.Name, sandbox.ErrUnsupported),
			"decide about the changes with `atoll sync review`; a second copy of the directory, such as `git worktree add` makes, gets a sandbox of its own")
	}
	p, err := a.planFork(ctx, source, who, session)
	if err != nil {
		return Forked{}, err
	}
	notices, err := a.forkPlan(ctx, source, p, stop)
	if err != nil {
		return Forked{}, err
	}
	if err := a.Registry.SetFact(ctx, anyFork, "1"); err != nil {
		return Forked{}, err
	}
	forked := Forked{Name: p.Spec.Name, SessionKey: p.Session.Key, From: source.Spec.Name, Image: p.Spec.Image, Workspace: p.Layout.WorkspaceDir, Notices: notices}
	return forked, a.Registry.SetFact(ctx, forkFact(p.Spec.Name), source.Spec.Name)
}

// ForkSubject makes the sandbox of a subject, started, with the files of another's, as
// they are now. A source that runs should be paused: then its files are those of one
// moment.
func (a *Installation) ForkSubject(ctx context.Context, from, to Subject) (*plan.Plan, error) {
	source, err := a.Plan(from)
	if err != nil {
		return nil, err
	}
	p, err := a.Plan(to)
	if err == nil {
		err = p.Refusal()
	}
	if err != nil {
		return nil, err
	}
	if _, err := a.chooseBackend(ctx, p); err != nil {
		return nil, err
	}
	release, err := a.holdQuota(ctx, to, p)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := a.roomFor(p); err != nil {
		return nil, err
	}
	_, err = a.forkPlan(ctx, source, p, false)
	return p, err
}

// forkPlan makes the sandbox of a plan with the files of another.
func (a *Installation) forkPlan(ctx context.Context, source, p *plan.Plan, stop bool) (notices []string, err error) {
	copied := false // what was there before must not be taken away
	err = a.Manager.Fork(ctx, source.Spec.Name, p.Spec, sandbox.ForkOptions{
		Stop: stop,
		Begin: func(ctx context.Context, row *sandbox.Entry) error {
			if _, err := os.Lstat(p.Layout.SandboxDir); err == nil && p.Layout.HasCopy() {
				return explainFork(fmt.Errorf("sandbox workspace %s: %w", p.Layout.SandboxDir, fs.ErrExist))
			}
			return a.Registry.SetFact(ctx, forkingFact(p.Spec.Name), beganAt(row))
		},
		Files: func(ctx context.Context, running bool) (err error) {
			if err := workspace.Fork(ctx, source.Layout, p.Layout, running); err != nil {
				return explainFork(err)
			}
			copied = true
			notices, err = a.prepare(ctx, p)
			return err
		},
		Undo: func(ctx context.Context) error {
			if !copied {
				return nil
			}
			return workspace.Remove(ctx, p.Layout)
		},
	})
	return notices, err
}

// named finds a sandbox by its name, or by what its users share. A word that is
// neither must not select the sandbox of the default session.
func (a *Installation) named(ctx context.Context, word string) (*sandbox.Entry, error) {
	entries, err := a.Registry.List(ctx, 0)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !e.Imported && (e.ContainerName == word || e.SessionKey == word) {
			return e, nil
		}
	}
	return nil, errhint.With(fmt.Errorf("sandbox %q: %w", word, sandbox.ErrNotFound), "`atoll ps` shows what there is")
}

// explainFork says what to do about a workspace that cannot be copied.
func explainFork(err error) error {
	switch {
	case errors.Is(err, clone.ErrNotShared):
		return errhint.With(fmt.Errorf("it is running: %w: %w", err, sandbox.ErrUnsupported),
			"stop it first, with --stop, or keep the workspaces on btrfs or xfs")
	case errors.Is(err, fs.ErrExist):
		return errhint.With(err, "that session had a sandbox once, whose files are still there: choose another session")
	}
	return err
}

// planFork plans the sandbox of the new session.
func (a *Installation) planFork(ctx context.Context, source *plan.Plan, who Subject, session string) (*plan.Plan, error) {
	if session == "" {
		session = "agent:" + source.Agent.ID + ":fork-" + strings.ToLower(rand.Text()[:8])
	}
	p, err := a.Plan(ownSandbox(Subject{AgentID: source.Agent.ID, SessionKey: session, Account: who.Account}))
	if err != nil {
		return nil, err
	}
	if err := p.Refusal(); err != nil {
		return nil, err
	}
	if source.Net != nil || p.Net != nil {
		return nil, errhint.With(fmt.Errorf("sandbox %q is half of a network pair, which cannot be forked: %w", source.Spec.Name, sandbox.ErrUnsupported),
			"remove sandbox.networkAllow to have one sandbox a session")
	}
	_, err = a.chooseBackend(ctx, p)
	return p, err
}

// ownSandbox gives a session a sandbox of its own, whatever scope its agent has.
func ownSandbox(who Subject) Subject {
	before := who.Adjust
	who.Adjust = func(agent *config.Agent) {
		if before != nil {
			before(agent)
		}
		agent.Sandbox.Scope = config.ScopeSession
	}
	return who
}

// What the registry remembers of forks: that there are any, and of what each is.
const anyFork = "forks"

func forkFact(name string) string { return "fork:" + name }

// forkingFact is the name of the fact that a fork began, whose value is the time of
// its row. It need not be removed: it fits that row and no later one.
func forkingFact(name string) string { return "forking:" + name }

func beganAt(row *sandbox.Entry) string { return strconv.FormatInt(row.CreatedAtMs, 10) }

// unmade takes away the copy of a workspace that was made for a fork which did
// not finish. There was none when the fork began.
func (a *Installation) unmade(ctx context.Context, row *sandbox.Entry) error {
	began, err := a.Registry.Fact(ctx, forkingFact(row.ContainerName))
	if err != nil || began != beganAt(row) {
		return err
	}
	return a.removeCopy(ctx, row)
}

// forkOf directs a session that was made by a fork to its own sandbox.
func (a *Installation) forkOf(ctx context.Context, who Subject) Subject {
	if forks, err := a.Registry.Fact(ctx, anyFork); who.SessionKey == "" || err != nil || forks == "" {
		return who
	}
	own := ownSandbox(who)
	p, err := a.Plan(own)
	if err != nil {
		return who
	}
	from, err := a.Registry.Fact(ctx, forkFact(p.Spec.Name))
	if err != nil || from == "" {
		return who
	}
	if _, err := a.Registry.Get(ctx, p.Spec.Name); err != nil {
		return who // it was removed since
	}
	return own
}
