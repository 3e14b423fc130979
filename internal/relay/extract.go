package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/atoll-run/atoll/internal/confined"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/relay/git"
	"github.com/atoll-run/atoll/internal/relay/quarantine"
)

// extraction is what a ref of the sandbox brought into a quarantine.
type extraction struct {
	head  string // where the ref is, as the sandbox says; "" if it does not
	taken string // the commit that arrived, checked
	step  Step
	err   error
}

// startExtract starts extract. It runs beside the search for uncommitted work,
// which reads every file of the worktree and mostly leaves the branch as it is.
func (r *Relay) startExtract(ctx context.Context, p *Project, s Site, record *Record, ref string) <-chan extraction {
	done := make(chan extraction, 1)
	of := &Record{Run: record.Run, Work: record.Work}
	go func() { done <- r.extract(ctx, p, s, of, ref) }()
	return done
}

// extract fills a new quarantine with what a ref of the sandbox has, if that is
// anything. It replaces what a crash or an earlier extraction left.
func (r *Relay) extract(ctx context.Context, p *Project, s Site, record *Record, ref string) (x extraction) {
	dir, err := r.freshDir(record.Run)
	if err != nil {
		return extraction{err: err}
	}
	mirror, err := r.mirror(ctx, p)
	if err != nil {
		return extraction{err: err}
	}
	w := &record.Work
	if x.head, err = s.output(ctx, s.inRepo("rev-parse", "--verify", "--quiet", ref+"^{commit}")); err != nil {
		return extraction{err: missingBranch(w, err)}
	}
	if x.head == w.Tip() {
		x.step = Nothing
		return x
	}
	repo, err := git.Init(ctx, filepath.Join(dir, quarantineName), confined.Limits{}, mirror)
	if err != nil {
		return extraction{err: err}
	}
	x.step = Taken
	x.taken, x.err = importBundle(ctx, p, s, repo, commitRange{ref, w.Tip()})
	return x
}

// freshDir makes the empty directory of a run's record and quarantine.
func (r *Relay) freshDir(run string) (string, error) {
	dir, err := r.runDir(run)
	if err != nil {
		return "", err
	}
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	return dir, os.MkdirAll(dir, 0o700)
}

// discard removes the directory of a run that has no record.
func (r *Relay) discard(record *Record) error {
	dir, err := r.runDir(record.Run)
	if err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// commitRange is the commits of ref that from does not have.
type commitRange struct{ ref, from string }

// importBundle streams a bundle from git in the sandbox into the quarantine.
func importBundle(ctx context.Context, p *Project, s Site, repo *git.Repo, of commitRange) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out, in := io.Pipe()
	done := make(chan error, 1)
	go func() {
		argv := s.inRepo("-c", "core.hooksPath=/dev/null", "bundle", "create", "--quiet", "--version=2", "-", of.ref, "^"+of.from)
		err := s.Sandbox.Exec(ctx, &machine.Command{Argv: argv, Dir: "/", Stdout: in})
		_ = in.CloseWithError(err) // never fails
		done <- err
	}()
	head, err := quarantine.Import(ctx, repo, of.from, out, p.maxBytes())
	_ = out.CloseWithError(io.ErrClosedPipe) // never fails
	if err != nil {
		cancel()
	}
	if sent := <-done; sent != nil && (err == nil || !errors.Is(sent, ErrProgram)) && ctx.Err() == nil {
		err = fmt.Errorf("git in the sandbox: %w", sent) // the sandbox is at fault, not the bundle
	}
	return head, err
}

// missingBranch is the error of a branch that cannot be found. One that the agent
// removed stays refused.
func missingBranch(w *Work, err error) error {
	if errors.Is(err, ErrProgram) {
		return fmt.Errorf("%w: the branch %s is not in the sandbox any more", ErrRefused, w.Key.Branch())
	}
	return err
}
