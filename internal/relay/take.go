package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/atoll-run/atoll/internal/relay/confined"
	"github.com/atoll-run/atoll/internal/relay/content"
	"github.com/atoll-run/atoll/internal/relay/git"
	"github.com/atoll-run/atoll/internal/relay/quarantine"
	"github.com/atoll-run/atoll/internal/relay/rewrite"
)

// Order is what is to be done with the commits of a run.
type Order struct {
	Run     string
	Account string
	Agent   string
	Work    Work
	About   About
	Held    bool // keep them until a person has them sent
}

// Take brings the commits of a run out of its place and judges them, and commits
// before what the agent did not. Afterwards the place is not needed any more,
// unless Record.Unsaved says why: what there was is in quarantines. Taking the
// same run again returns what is known of it.
func (r *Relay) Take(ctx context.Context, p *Project, s Site, o *Order) (*Record, error) {
	if known, err := r.Load(o.Run); !errors.Is(err, os.ErrNotExist) {
		return known, err
	}
	if _, err := r.runDir(o.Run); err != nil {
		return nil, err
	}
	record := &Record{Run: o.Run, Account: o.Account, Agent: o.Agent, Project: p.id(), Work: o.Work, About: o.About, Held: o.Held}
	if err := r.takePieces(ctx, p, s, record); err != nil {
		return nil, err
	}
	return r.takeRef(ctx, p, s, record, o.Work.Key.Ref())
}

// takeRef fills a quarantine with what a ref of the place has, and judges it.
func (r *Relay) takeRef(ctx context.Context, p *Project, s Site, record *Record, ref string) (*Record, error) {
	dir, err := r.runDir(record.Run)
	if err != nil {
		return nil, err
	}
	if err := os.RemoveAll(dir); err != nil { // what a crash left before there was a record
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := r.extract(ctx, p, s, record, ref); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := r.save(record); err != nil {
		return nil, err
	}
	return record, r.judge(ctx, p, record)
}

// extract fills the quarantine, if there is anything to fill it with.
func (r *Relay) extract(ctx context.Context, p *Project, s Site, record *Record, ref string) error {
	mirror, err := r.mirror(ctx, p)
	if err != nil {
		return err
	}
	dir, err := r.runDir(record.Run)
	if err != nil {
		return err
	}
	w := &record.Work
	head, err := s.ask(ctx, s.inRepo("rev-parse", "--verify", "--quiet", ref+"^{commit}"))
	if err != nil {
		return gone(w, err)
	}
	if head == w.Tip() {
		record.Step = Nothing
		return nil
	}
	repo, err := git.Init(ctx, filepath.Join(dir, quarantineName), confined.Limits{}, mirror)
	if err != nil {
		return err
	}
	record.Taken, err = stream(ctx, p, s, repo, span{ref, w.Tip()})
	record.Step = Taken
	return err
}

// span is the commits that a ref has and its beginning has not.
type span struct{ ref, from string }

// stream lets git inside write a bundle and git outside read it, at once.
func stream(ctx context.Context, p *Project, s Site, repo *git.Repo, of span) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out, in := io.Pipe()
	done := make(chan error, 1)
	go func() {
		argv := s.inRepo("-c", "core.hooksPath=/dev/null", "bundle", "create", "--quiet", "--version=2", "-", of.ref, "^"+of.from)
		err := s.Place.Exec(ctx, &Command{Argv: argv, Dir: "/", Stdout: in})
		_ = in.CloseWithError(err) // never fails
		done <- err
	}()
	head, err := quarantine.Import(ctx, repo, of.from, out, p.maxBytes())
	_ = out.CloseWithError(io.ErrClosedPipe) // never fails
	if err != nil {
		cancel()
	}
	if sent := <-done; sent != nil && (err == nil || !errors.Is(sent, ErrProgram)) && ctx.Err() == nil {
		err = fmt.Errorf("git in the sandbox: %w", sent) // the place is at fault, not what came out of it
	}
	return head, err
}

// gone is the error of a branch that cannot be found. If that is the agent's
// doing, it stays so.
func gone(w *Work, err error) error {
	if errors.Is(err, ErrProgram) {
		return fmt.Errorf("%w: the branch %s is not in the sandbox any more", ErrRefused, w.Key.Branch())
	}
	return err
}

// judge decides and, if the commits may be pushed, writes them anew.
func (r *Relay) judge(ctx context.Context, p *Project, record *Record) error {
	if record.Step != Taken {
		return nil
	}
	repo, err := r.quarantine(record)
	if err != nil {
		return err
	}
	policy := p.Policy
	policy.Known = append(policy.Known, r.Known...)
	if record.Report, err = content.Judge(ctx, repo, record.Work.Tip(), record.Taken, policy); err != nil {
		return fmt.Errorf("judge the commits: %w", err)
	}
	if record.Head, err = r.rewrite(ctx, p, repo, record); err != nil {
		return err
	}
	if err := r.render(ctx, repo, record); err != nil {
		return err
	}
	record.Step = map[content.Verdict]Step{"": Judged, content.Approval: Waiting}[record.Report.Verdict()]
	if record.Step == "" {
		record.Step = Blocked
	}
	return r.save(record)
}

func (r *Relay) rewrite(ctx context.Context, p *Project, repo *git.Repo, record *Record) (string, error) {
	if record.Report.Verdict() == content.Blocked {
		return "", nil
	}
	commits, err := repo.Commits(ctx, record.Report.Commits)
	if err != nil {
		return "", err
	}
	return rewrite.Commits(ctx, repo, commits, p.Identity)
}

func (r *Relay) quarantine(record *Record) (*git.Repo, error) {
	dir, err := r.runDir(record.Run)
	if err != nil {
		return nil, err
	}
	return git.Open(filepath.Join(dir, quarantineName), confined.Limits{})
}
