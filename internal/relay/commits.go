package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/atoll-run/atoll/internal/confined"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/relay/git"
	"github.com/atoll-run/atoll/internal/relay/quarantine"
)

// Commits are commits of an agent that are in a repository of ours already, for
// example those of an overlay workspace.
type Commits struct {
	Repo  *git.Repo
	Head  string
	Known []string // commits that the agent did not make
}

// TakeCommits judges commits as Take does those of a sandbox: all that the
// project's base does not have. The work names the branch; a branch that is there
// is continued or left alone.
func (r *Relay) TakeCommits(ctx context.Context, p *Project, c Commits, o *TakeRequest) (*Record, error) {
	if known, err := r.Load(o.Run); !errors.Is(err, os.ErrNotExist) {
		return known, err
	}
	mirror, heads, err := r.refresh(ctx, p, o.Work.Key)
	if err != nil {
		return nil, err
	}
	record := &Record{Run: o.Run, Account: o.Account, Agent: o.Agent, Project: p.id(), About: o.About, Held: o.Held,
		Work: Work{Key: o.Work.Key, Base: heads.Base, Seen: heads.Branch, Dir: o.Work.Dir}}
	if p.Checkout != nil {
		record.Work.Checkout = p.Checkout.Top
	}
	got := r.copyCommits(ctx, p, mirror, c, record)
	if record, err = r.store(ctx, p, record, got); err != nil {
		return record, err
	}
	return record, r.checkContinues(ctx, record)
}

// copyCommits fills the quarantine of a record, and finds where the work began.
func (r *Relay) copyCommits(ctx context.Context, p *Project, mirror *git.Repo, c Commits, record *Record) extraction {
	dir, err := r.freshDir(record.Run)
	if err != nil {
		return extraction{err: err}
	}
	repo, err := git.Init(ctx, filepath.Join(dir, quarantineName), confined.Limits{}, mirror)
	if err != nil {
		return extraction{err: err}
	}
	known, err := existing(ctx, mirror, c.Known)
	if err != nil {
		return extraction{err: err}
	}
	if err := importCommits(ctx, repo, c, known, p.maxBytes()); err != nil {
		return extraction{err: err}
	}
	if record.Work.Start, err = repo.MergeBase(ctx, c.Head, record.Work.Base); err != nil {
		return extraction{err: err}
	}
	switch record.Work.Start {
	case "":
		return extraction{err: fmt.Errorf("%w: they have no commit in common with %s", ErrRefused, p.baseRef())}
	case c.Head:
		return extraction{step: Nothing}
	}
	return extraction{taken: c.Head, step: Taken}
}

// existing returns the commits among objects that a repository has.
func existing(ctx context.Context, repo *git.Repo, ids []string) (known []string, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	objects, err := repo.Stat(ctx, ids)
	for _, o := range objects {
		if o.Type == "commit" {
			known = append(known, o.ID)
		}
	}
	return known, err
}

// importCommits copies what a commit has and the known ones have not, with the
// checks of a bundle that came from a sandbox.
func importCommits(ctx context.Context, to *git.Repo, c Commits, known []string, limit int64) error {
	wanted := []string{c.Head}
	for _, id := range known {
		wanted = append(wanted, "^"+id)
	}
	out, in := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := c.Repo.WritePack(ctx, in, wanted, nil)
		_ = in.CloseWithError(err) // never fails
		done <- err
	}()
	header := strings.NewReader("# v2 git bundle\n" + c.Head + " HEAD\n\n")
	_, err := quarantine.ImportBeside(ctx, to, known, io.MultiReader(header, out), limit)
	_ = out.CloseWithError(io.ErrClosedPipe) // never fails
	if sent := <-done; err == nil {
		err = sent
	}
	return err
}

// checkContinues refuses commits that would replace others on their branch. The
// same commits are always written anew as the same ones, so that those of an
// earlier delivery are found.
func (r *Relay) checkContinues(ctx context.Context, record *Record) error {
	seen := record.Work.Seen
	if seen == "" || record.Head == "" {
		return nil
	}
	repo, err := r.quarantine(record)
	if err != nil {
		return err
	}
	continues, err := repo.Descends(ctx, seen, record.Head)
	switch {
	case err != nil:
		return errors.Join(err, r.discard(record))
	case !continues:
		err := errhint.With(fmt.Errorf("%w: %s has commits that these do not continue", ErrRefused, record.Work.Key.Branch()), "name another branch")
		return errors.Join(err, r.discard(record))
	case seen == record.Head:
		record.Step = Nothing
		return r.save(record)
	}
	return nil
}
