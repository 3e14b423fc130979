package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/lease"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/relay"
	"github.com/atoll-run/atoll/internal/relay/branch"
	"github.com/atoll-run/atoll/internal/run"
)

// workFile says which branch was prepared for a run, and from where.
const workFile = "work.json"

// One program of git in a sandbox may take so long: before a run, when all of a
// repository may have to be unpacked, and after it.
const (
	relayBefore = 10 * time.Minute
	relayAfter  = 45 * time.Second
)

// prepareWork puts the repository into the sandbox of a run that is to commit.
// From here until the run's place is removed nobody else works on the branch.
func (p *RunPlace) prepareWork(ctx context.Context) error {
	if p.order.Branch == "" {
		return nil
	}
	relays, project, err := p.runs.relayFor(p.order.Account)
	if err != nil {
		return err
	}
	if err := p.holdBranch(ctx); err != nil {
		return err
	}
	site, err := p.site(ctx, relayBefore)
	if err != nil {
		return err
	}
	if p.work, err = relays.Prepare(ctx, project, site, branch.Key(p.order.Branch)); err != nil {
		return &run.Failure{Code: "relay_failed", Message: err.Error()}
	}
	text, err := json.Marshal(p.work)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(p.runs.app.runDir(p.order.Run), workFile), text, 0o600)
}

func (r *Runs) relayFor(account string) (*Relays, *relay.Project, error) {
	relays, err := r.app.AuditedRelays()
	if err != nil {
		return nil, nil, err
	}
	project, err := relays.Project(account)
	return relays, project, err
}

// holdBranch waits until nobody else works on the branch.
func (p *RunPlace) holdBranch(ctx context.Context) (err error) {
	if p.branch == nil {
		p.branch, err = p.runs.app.holdBranch(ctx, p.order.Branch)
	}
	return err
}

func (p *RunPlace) releaseBranch() {
	if p.branch != nil {
		p.branch.Release()
		p.branch = nil
	}
}

func (a *App) holdBranch(ctx context.Context, key string) (*lease.Lease, error) {
	return a.leases.Hold(ctx, "relay branch "+key)
}

func (p *RunPlace) site(ctx context.Context, step time.Duration) (relay.Site, error) {
	s, err := p.Session(ctx)
	if err != nil {
		return relay.Site{}, err
	}
	return relay.Site{Place: relayPlace{s, step}, Root: s.Plan.Spec.Workdir, Link: "repo"}, nil
}

// loadWork returns what was prepared, by this process or by an earlier one; nil
// if nothing was.
func (p *RunPlace) loadWork() (*relay.Work, error) {
	if p.work != nil {
		return p.work, nil
	}
	text, err := os.ReadFile(filepath.Join(p.runs.app.runDir(p.order.Run), workFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	p.work = new(relay.Work)
	return p.work, json.Unmarshal(text, p.work)
}

// relayPlace is the sandbox of a session as the relay sees it.
type relayPlace struct {
	session *Session
	step    time.Duration // that one program may take
}

// Exec runs a program as the agent's user.
func (r relayPlace) Exec(ctx context.Context, c *relay.Command) error {
	said := &tail{most: 2 << 10}
	ended, err := r.session.Machine.Exec(ctx, &machine.Command{
		Argv: c.Argv, Env: CommandEnv(r.session.Plan, r.session.Plan.Env.Passed), Dir: c.Dir,
		Stdin: c.Stdin, Stdout: c.Stdout, Stderr: said, Timeout: r.step, EndTree: true,
	})
	switch {
	case err != nil:
		return err
	case ended.ExitCode != 0:
		return fmt.Errorf("%w with code %d: %.500q", relay.ErrProgram, ended.ExitCode, said.bytes())
	}
	return nil
}

// relayFinisher takes the commits of a run out, and sends them if the run did not
// fail.
type relayFinisher struct{ runs *Runs }

// Name is how receipts call it.
func (relayFinisher) Name() string { return "relay" }

// Finish does what is left to do. An error keeps the place, so that nothing is
// lost; after Take it is not needed, but no one is hurt by keeping it.
func (f relayFinisher) Finish(ctx context.Context, receipt *run.Receipt, place run.Place) (string, error) {
	p, ok := place.(*RunPlace)
	if !ok || p == nil {
		return "", nil
	}
	work, err := p.loadWork()
	if err != nil || work == nil {
		return "", err
	}
	if err := p.holdBranch(ctx); err != nil {
		return "", err
	}
	defer p.releaseBranch() // also of what failed: whoever goes on takes it again
	relays, project, err := f.runs.relayFor(p.order.Account)
	if err != nil {
		return "", err
	}
	record, err := f.take(ctx, relays, project, p, receipt)
	if errors.Is(err, relay.ErrRefused) {
		return "refused: " + err.Error(), nil
	}
	if err != nil {
		return "", err
	}
	if receipt.Error != nil && record.Step == relay.Judged {
		return "the run failed: its commits are kept and not pushed; `atoll relay push " + receipt.ID + "` does", nil
	}
	if err := relays.Send(ctx, project, record); err != nil {
		return "", err
	}
	return RelayNote(record), nil
}

// take needs the sandbox only if an earlier process did not get to the end of it.
func (f relayFinisher) take(ctx context.Context, relays *Relays, project *relay.Project, p *RunPlace, receipt *run.Receipt) (*relay.Record, error) {
	if known, err := relays.Load(receipt.ID); !errors.Is(err, fs.ErrNotExist) {
		return known, err
	}
	site, err := p.site(ctx, relayAfter)
	if err != nil {
		return nil, err
	}
	return relays.Take(ctx, project, site, &relay.Order{
		Run: receipt.ID, Account: p.order.Account, Work: *p.work,
		About: relay.About{Model: receipt.Model, Variant: receipt.Variant, Cost: fmt.Sprintf("$%.4f", float64(receipt.Bill.MicroUSD)/1e6)},
	})
}

// SendRelay goes on with commits that were kept, when nobody works on the branch.
func (a *App) SendRelay(ctx context.Context, record *relay.Record) error {
	relays, err := a.AuditedRelays()
	if err != nil {
		return err
	}
	project, err := relays.Project(record.Account)
	if err != nil {
		return err
	}
	held, err := a.holdBranch(ctx, string(record.Work.Key))
	if err != nil {
		return err
	}
	defer held.Release()
	return relays.Send(ctx, project, record)
}

// RelayNote says in one line what became of commits.
func RelayNote(r *relay.Record) string {
	name := r.Work.Key.Branch()
	switch r.Step {
	case relay.Nothing:
		return "no commits"
	case relay.Blocked:
		return fmt.Sprintf("blocked: %d findings; `atoll relay status %s` lists them", len(r.Report.Findings), r.Run)
	case relay.Waiting:
		return fmt.Sprintf("waits for a person: `atoll relay status %s`, then `atoll relay push %s --approve`", r.Run, r.Run)
	case relay.Done:
		if r.PullURL != "" {
			return r.PullURL
		}
		return "pushed to " + name
	}
	return string(r.Step)
}
