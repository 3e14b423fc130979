package relay

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/atoll-run/atoll/internal/confined"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/relay/branch"
	"github.com/atoll-run/atoll/internal/relay/git"
)

// Work is a branch that is checked out in a sandbox.
type Work struct {
	Key   branch.Key `json:"key"`
	Base  string     `json:"base"` // where the pull request's branch begins to be ours
	Seen  string     `json:"seen"` // the branch on the remote, "" if it is not there
	Dir   string     `json:"dir"`  // inside
	Notes []string   `json:"notes,omitempty"`
	// Before are the commits and stashes that the sandbox had already.
	Before []string `json:"before,omitempty"`
	// Checkout is the work tree whose repository it is; "" if that is a remote.
	Checkout string `json:"checkout,omitempty"`
	// Start is where the work began, if it is neither Base nor Seen.
	Start string `json:"start,omitempty"`
}

// Tip is what the work starts from.
func (w *Work) Tip() string {
	if w.Start != "" {
		return w.Start
	}
	return Heads{w.Base, w.Seen}.Tip()
}

// Prepare sends the project's commits into a sandbox and checks the branch out
// there, without any credential. It can be repeated. The caller holds the lock of
// the branch.
func (r *Relay) Prepare(ctx context.Context, p *Project, s Site, key branch.Key) (*Work, error) {
	if _, err := s.output(ctx, []string{"git", "version"}); err != nil {
		return nil, errhint.With(errNoGit, "use an image with git, or name no branch")
	}
	mirror, heads, err := r.refresh(ctx, p, key)
	if err != nil {
		return nil, err
	}
	alone, err := r.lockSandbox(ctx, s)
	if err != nil {
		return nil, err
	}
	defer alone()
	w := &Work{Key: key, Base: heads.Base, Seen: heads.Branch, Dir: s.Worktree(key)}
	if p.Checkout != nil {
		w.Checkout = p.Checkout.Top
		w.Notes = append(w.Notes, fmt.Sprintf("the work begins at %s of %s, without changes that are not committed there", w.Tip()[:12], w.Checkout))
	}
	for _, step := range []func() error{
		func() error { return s.run(ctx, []string{"git", "init", "--quiet", "--bare", s.repo()}) },
		func() error { return s.run(ctx, s.identityCommands(p.Identity.Email)...) },
		func() error { return uploadCommit(ctx, &upload{mirror, s, p.History}, heads.Tip()) },
		func() error { return r.checkout(ctx, s, w) },
		func() (err error) { w.Before, err = s.existingCommits(ctx); return err },
		func() error { return s.run(ctx, []string{"ln", "-sfn", w.Dir, s.link()}) },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// lockSandbox locks the preparation in sandboxes that runs share, because they
// share a repository there.
func (r *Relay) lockSandbox(ctx context.Context, s Site) (func(), error) {
	if !s.Shared {
		return func() {}, nil
	}
	return lock(ctx, filepath.Join(r.dir, "places.lock"))
}

// checkout makes the worktree stand on the tip. What an earlier run left there is
// kept: changes as a stash, commits under a ref of their own.
func (r *Relay) checkout(ctx context.Context, s Site, w *Work) error {
	name := w.Key.Branch()
	if _, err := s.output(ctx, in(w.Dir, "rev-parse", "--git-dir")); err != nil {
		return s.run(ctx, s.inRepo("worktree", "prune"),
			s.inRepo("worktree", "add", "--quiet", "--force", "-B", name, w.Dir, w.Tip()))
	}
	if err := r.keepLeftovers(ctx, s, w); err != nil {
		return err
	}
	return s.run(ctx, in(w.Dir, "checkout", "--quiet", "--force", "-B", name, w.Tip()))
}

func (r *Relay) keepLeftovers(ctx context.Context, s Site, w *Work) error {
	changed, err := s.output(ctx, in(w.Dir, "status", "--porcelain"))
	if err != nil && !errors.Is(err, confined.ErrTooMuch) {
		return err
	}
	if changed != "" || err != nil {
		if err := s.run(ctx, append(gitAsAtoll(w.Dir), "stash", "push", "--quiet", "--include-untracked", "--message", "left by an earlier run")); err != nil {
			return err
		}
		w.Notes = append(w.Notes, "changes that an earlier run left were stashed (git stash list)")
	}
	head, err := s.output(ctx, in(w.Dir, "rev-parse", "--verify", "--quiet", "HEAD"))
	if err != nil || head == w.Tip() || !git.IsID(head) {
		return nil //nolint:nilerr // a worktree without a commit has nothing to lose
	}
	if _, err := s.output(ctx, in(w.Dir, "merge-base", "--is-ancestor", head, w.Tip())); err == nil || r.isTaken(head) {
		return nil
	}
	w.Notes = append(w.Notes, "commits that an earlier run left are kept as refs/atoll/left/"+head[:12])
	return s.run(ctx, in(w.Dir, "update-ref", "refs/atoll/left/"+head[:12], head))
}

// gitAsAtoll is git with an author, for stashes where none is configured.
func gitAsAtoll(dir string) []string {
	return in(dir, "-c", "user.name=Atoll", "-c", "user.email=atoll@localhost")
}

// isTaken reports whether a record has these commits and pushed them.
func (r *Relay) isTaken(head string) bool {
	records, err := r.List()
	return err == nil && slices.ContainsFunc(records, func(known *Record) bool { return known.Taken == head && known.Step == Done })
}
