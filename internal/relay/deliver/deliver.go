package deliver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/relay"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/tailbuf"
)

// One program of git in a sandbox may take so long: before a run, when all of a
// repository may have to be unpacked, and after it.
const (
	StepBefore = 10 * time.Minute
	StepAfter  = 45 * time.Second
)

// ProjectOf opens the relay, with its steps in the audit log, and the repository
// that some work goes to.
func (d *Deliverer) ProjectOf(of WorkOf) (*Relays, *relay.Project, error) {
	relays, err := d.AuditedRelays()
	if err != nil {
		return nil, nil, err
	}
	project, err := relays.Project(of)
	return relays, project, err
}

// Site is a session's sandbox as the relay sees it.
func Site(s *provide.ReadySandbox) relay.Site { return SiteFor(s, StepBefore) }

// SiteFor is a session's sandbox for programs that take no longer than a step.
// Others may use it too.
func SiteFor(s *provide.ReadySandbox, step time.Duration) relay.Site {
	env := provide.CommandEnv(s.Plan, s.Plan.Env.Passed)
	return relay.Site{
		Sandbox: machineSandbox{s.Machine, env, step}, Root: s.Plan.Spec.Workdir, Link: "repo", Shared: true, Name: s.Plan.Agent.ID,
	}
}

// machineSandbox runs the programs of the relay through a machine.
type machineSandbox struct {
	machine *machine.Machine
	env     []string
	step    time.Duration // that one program may take
}

// Exec runs a program as the agent's user.
func (r machineSandbox) Exec(ctx context.Context, c *machine.Command) error {
	said := &tailbuf.Writer{Most: 2 << 10}
	command := *c
	command.Env, command.Stderr, command.Timeout, command.EndTree = r.env, said, r.step, true
	ended, err := r.machine.Exec(ctx, &command)
	switch {
	case err != nil:
		return err
	case ended.ExitCode != 0:
		return fmt.Errorf("%w with code %d: %.500q", relay.ErrProgram, ended.ExitCode, said.Bytes())
	}
	return nil
}

// Delivery is what is to be taken out of a place and sent.
type Delivery struct {
	Order relay.TakeRequest
	Site  func(context.Context) (relay.Site, error)
}

// Deliver takes the commits out, and sends them unless they are held. Doing it again goes on where it ended. The caller holds the branch.
// The record is nil if there was nothing that could be taken.
func (d *Deliverer) Deliver(ctx context.Context, job *Delivery) (*relay.Record, string, error) {
	relays, project, err := d.ProjectOf(WorkOf{job.Order.Account, job.Order.Agent, job.Order.Work.Checkout})
	if err != nil {
		return nil, "", err
	}
	record, err := relays.takeOnce(ctx, project, job)
	if errors.Is(err, relay.ErrRefused) {
		return nil, "refused: " + err.Error(), nil
	}
	if err != nil {
		return record, "", err
	}
	if record.Held {
		return record, Note(record), nil
	}
	if err := d.push(ctx, relays, project, record); err != nil {
		return record, "", err
	}
	return record, Note(record), nil
}

// takeOnce needs the sandbox only if an earlier process did not get to the end
// of it.
func (r *Relays) takeOnce(ctx context.Context, project *relay.Project, d *Delivery) (*relay.Record, error) {
	if known, err := r.Load(d.Order.Run); !errors.Is(err, fs.ErrNotExist) {
		return known, err
	}
	site, err := d.Site(ctx)
	if err != nil {
		return nil, err
	}
	return r.Take(ctx, project, site, &d.Order)
}

// Send goes on with commits that were kept, when it has the lock of the branch.
func (d *Deliverer) Send(ctx context.Context, record *relay.Record) error {
	held, err := d.HoldBranch(ctx, BranchClaim{Key: record.Work.Key, Run: record.Run})
	if err != nil {
		return err
	}
	defer held.Release()
	return d.sendHeld(ctx, record)
}

func (d *Deliverer) sendHeld(ctx context.Context, record *relay.Record) error {
	relays, project, err := d.ProjectOf(WorkOf{record.Account, record.Agent, record.Work.Checkout})
	if err != nil {
		return err
	}
	return d.push(ctx, relays, project, record)
}

// Dollars formats millionths of a dollar.
func Dollars(micro int64) string { return fmt.Sprintf("$%.4f", float64(micro)/1e6) }

// Note says in one line what became of commits.
func Note(r *relay.Record) string {
	notes := []string{branchNote(r)}
	if r.Committed {
		notes = append(notes, "its last commit is Atoll's, of what the agent did not commit")
	}
	for _, p := range r.Pieces {
		notes = append(notes, fmt.Sprintf("not pushed: %s, see `atoll relay show %s --patch`", p.What, p.Run))
	}
	return strings.Join(notes, "; ")
}

func branchNote(r *relay.Record) string {
	name := r.Work.Key.Branch()
	switch {
	case r.Denied != "":
		return "kept and not pushed: " + r.Denied + " denied it"
	case r.Piece != "" && r.Held && !r.Step.Over():
		return "kept and not pushed: " + r.Piece + "; `atoll relay push " + r.Run + "` pushes it to " + name
	case r.Held && !r.Step.Over():
		return "the run failed: its commits are kept and not pushed; `atoll relay push " + r.Run + "` does"
	case r.Step == relay.Nothing:
		return "no commits"
	case r.Step == relay.Blocked:
		return fmt.Sprintf("blocked: %d findings; `atoll relay status %s` lists them", len(r.Report.Findings), r.Run)
	case r.Step == relay.Waiting:
		return fmt.Sprintf("waits for a person: `atoll relay status %s`, then `atoll relay push %s --approve`", r.Run, r.Run)
	case r.Step == relay.Done && r.PullURL != "":
		return r.PullURL
	case r.Step == relay.Done && r.Work.Checkout != "":
		return fmt.Sprintf("branch %s in %s (`git diff HEAD...%s` shows it)", name, r.Work.Checkout, name)
	case r.Step == relay.Done:
		return "pushed to " + name
	}
	return string(r.Step)
}

// DeliveryOf is what became of commits, for a receipt. Without a record they were
// refused.
func DeliveryOf(work *relay.Work, r *relay.Record, note string) *run.Delivery {
	d := &run.Delivery{Branch: work.Key.Branch(), State: run.Refused, Note: note}
	if r == nil {
		return d
	}
	d.State, d.Pull = string(r.Step), r.PullURL
	switch {
	case r.Held && !r.Step.Over():
		d.State = "held"
	case r.Step == relay.Nothing && len(r.Pieces) > 0, r.Step == relay.Nothing && r.Unsaved != "":
		d.State = run.Kept
	}
	return d
}

// NoteName is the name that the relay has in the notes of receipts.
const NoteName = "relay"

// AboutRun is what a pull request says of a run.
func AboutRun(receipt *run.Receipt) relay.About {
	return relay.About{Model: receipt.Model, Variant: receipt.Variant, Cost: Dollars(receipt.Bill.MicroUSD)}
}
