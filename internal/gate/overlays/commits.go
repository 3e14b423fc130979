package overlays

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/checkout"
	"github.com/atoll-run/atoll/internal/gate/take"
	"github.com/atoll-run/atoll/internal/relay/deliver"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// commitStep is how long one program of git in a sandbox may take.
const commitStep = 2 * time.Minute

// Commits lists commits made inside that the repository of the host has not. A
// sandbox that is stopped is started for it.
func (s *Service) Commits(ctx context.Context, of *api.SyncSubject) (*api.SyncCommits, error) {
	return onCommits(ctx, s, of, func(_ *subject, w *take.Workspace) (*api.SyncCommits, error) {
		offer, err := w.Commits(ctx, "")
		if err != nil {
			return nil, err
		}
		return commitsOf(offer), nil
	})
}

func commitsOf(o *take.Offer) *api.SyncCommits {
	answer := &api.SyncCommits{Branch: text(o.Branch), Head: o.Head, Verdict: string(o.Verdict), Commits: []api.SyncCommit{}}
	for _, other := range o.Others {
		answer.Others = append(answer.Others, text(other))
	}
	for i := range o.Commits {
		c := &o.Commits[i]
		row := api.SyncCommit{ID: c.ID, Subject: text(c.Subject), Author: text(c.Author), Time: c.When, Files: len(c.Files) + c.More, Verdict: string(c.Verdict)}
		for _, f := range c.Findings {
			row.Reasons = append(row.Reasons, api.SyncReason{Rule: f.Rule, Verdict: string(f.Verdict), Detail: text(f.String())})
		}
		answer.Commits = append(answer.Commits, row)
	}
	return answer
}

// Take takes the agent's commits to a branch of the host's repository.
func (s *Service) Take(ctx context.Context, r *api.SyncTake, by string) (*api.SyncTaken, error) {
	answer, err := onCommits(ctx, s, &r.Subject, func(found *subject, w *take.Workspace) (*api.SyncTaken, error) {
		taken, err := w.Take(ctx, take.Request{Branch: r.Branch, From: r.From, Head: r.Head, Approved: r.Approve, Override: r.Reason, Unsigned: r.Unsigned})
		if err != nil {
			return nil, err
		}
		found.changed("take", taken.Commits)
		found.auditTake(taken, by)
		return &api.SyncTaken{Branch: taken.Branch, Ref: taken.Ref, Head: taken.Head, Commits: taken.Commits, Created: taken.Created, Signed: taken.Signed, Notes: taken.Notes}, nil
	})
	return decided(ctx, s, &r.Subject, answer, err)
}

// auditTake writes down who took commits, and where to.
func (s *subject) auditTake(t *take.Taken, by string) {
	log, err := s.models.AuditLog()
	if err == nil {
		err = log.Append(&audit.GitEvent{
			Time: time.Now(), Subject: audit.Subject{Account: s.account, Agent: s.plan.Agent.ID, Session: s.plan.Session.Key},
			Step: "taken by " + by, Branch: t.Branch, Head: t.Head,
		})
	}
	if err != nil {
		s.Logger.Error("audit of taken commits", "branch", t.Branch, "error", err)
	}
}

// onCommits runs f with the workspace of a subject whose base is a repository.
func onCommits[A any](ctx context.Context, s *Service, of *api.SyncSubject, f func(*subject, *take.Workspace) (*A, error)) (*A, error) {
	found, err := s.find(of)
	if err != nil {
		return nil, err
	}
	base, err := checkout.At(found.trees[0].Base)
	if err != nil {
		return nil, explain(err)
	}
	box, leave, err := found.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	w, err := found.workspace(box, base)
	if err != nil {
		return nil, err
	}
	answer, err := f(found, w)
	if err != nil {
		return nil, explain(err)
	}
	return answer, nil
}

// running enters the sandbox if it runs, or returns sandbox.ErrNotRunning.
func (s *subject) running(ctx context.Context) (*provide.ReadySandbox, error) {
	h, err := s.Manager.Attach(ctx, s.plan.Spec.Name)
	if errors.Is(err, sandbox.ErrNotFound) {
		err = sandbox.ErrNotRunning
	}
	if err != nil {
		return nil, err
	}
	return &provide.ReadySandbox{Handle: h, Plan: s.plan}, nil
}

// workspace returns the workspace of a sandbox for package take.
func (s *subject) workspace(box *provide.ReadySandbox, base *checkout.Checkout) (*take.Workspace, error) {
	relays, err := deliver.OpenRelays(s.Settings)
	if err != nil {
		return nil, err
	}
	run := ""
	if s.run != nil {
		run = s.run.Run
	}
	return &take.Workspace{
		Run: run, Sandbox: deliver.SiteFor(box, commitStep).Sandbox, Dir: s.trees[0].Target, Checkout: base, Slug: s.slug(),
		State: filepath.Join(s.Paths.AtollState, "sync", s.slug(), "git"), Policy: take.LocalPolicy(relays.Policy()),
	}, nil
}

// offer returns the agent's commits if the base is a repository and the sandbox runs;
// nil if not. What goes wrong inside is a note: files can be decided about without.
func (s *subject) offer(ctx context.Context) (o *take.Offer, note string) {
	base, err := checkout.At(s.trees[0].Base)
	if err != nil {
		return nil, ""
	}
	if s.isWithoutCommits(ctx) {
		return nil, ""
	}
	box, leave, err := s.look(ctx)
	if err != nil {
		s.unknown = true
		return nil, "the sandbox does not run, so its commits are not looked at"
	}
	defer leave()
	w, err := s.workspace(box, base)
	if err == nil {
		o, err = w.Commits(ctx, "")
	}
	if err != nil {
		s.unknown = true
		return nil, text("the agent's commits cannot be looked at: " + err.Error())
	}
	return o, ""
}

// look enters the sandbox if it runs. That of a run is started: nothing runs there
// that a person could wait for.
func (s *subject) look(ctx context.Context) (*provide.ReadySandbox, func(), error) {
	if s.run != nil {
		return s.enter(ctx)
	}
	box, err := s.running(ctx)
	if err != nil {
		return nil, nil, err
	}
	return box, box.Release, nil
}

// isWithoutCommits reports whether a run is over that made no commits.
func (s *subject) isWithoutCommits(ctx context.Context) bool {
	if s.run == nil || s.run.Waiting == nil || s.run.Committed {
		return false
	}
	_, err := s.Registry.Get(ctx, s.plan.Spec.Name)
	return errors.Is(err, sandbox.ErrNotFound)
}
