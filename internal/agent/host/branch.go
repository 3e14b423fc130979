package host

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/atoll-run/atoll/internal/agent"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/relay"
	"github.com/atoll-run/atoll/internal/relay/branch"
	"github.com/atoll-run/atoll/internal/relay/deliver"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// deliveryTime bounds what is done with commits after an agent has ended.
const deliveryTime = 5 * time.Minute

// agentBranch is the branch that an agent on the host works on.
type agentBranch struct {
	key     branch.Key
	who     provide.Subject
	agent   string // its id
	relays  *deliver.Relays
	project *relay.Project
	held    *filelock.Lock
	work    *deliver.AgentWork
	note    string // what became of its commits
	ended   bool   // the agent has begun, and ended
}

// awaitBranch has the branch for this agent alone. What could go nowhere is
// refused before anything is made.
func (w *Worker) awaitBranch(ctx context.Context, o *Options) (err error) {
	if o.Branch == "" {
		return nil
	}
	p, err := w.host.Plan(o.Who)
	if err != nil {
		return err
	}
	b := &agentBranch{key: branch.Key(o.Branch), who: o.Who, agent: p.Agent.ID}
	if b.relays, b.project, err = w.host.commits.ProjectOf(deliver.WorkOf{Account: o.Who.Account, Agent: b.agent, Checkout: o.Checkout}); err != nil {
		return err
	}
	if err := w.canCommit(p, b.relays); err != nil {
		return err
	}
	tell := func(text string) {
		if o.Watch != nil {
			o.Watch(agent.Event{Type: agent.Notice, Text: text})
		}
	}
	if b.held, err = w.host.commits.HoldBranch(ctx, deliver.BranchClaim{Key: b.key, Run: w.Run, Tell: tell}); err != nil {
		return err
	}
	w.branch = b
	w.undo = append(w.undo, func() error { return w.host.leaveBranch(b) })
	return nil
}

// leaveBranch gives a branch back. Of an agent that never began nothing is left.
func (h *Host) leaveBranch(b *agentBranch) (err error) {
	if b.work != nil && !b.ended {
		err = deliver.AgentNotes(h.Settings).Remove(b.work.Run)
	}
	b.held.Release()
	return err
}

// canCommit refuses agents whose commits could not be taken.
func (w *Worker) canCommit(p *plan.Plan, relays *deliver.Relays) error {
	switch {
	case !p.Sandboxed:
		return errhint.With(errors.New("commits are taken out of sandboxes only, and this session has none"), "set sandbox.mode to all, or name no branch")
	case p.Layout.Access == config.AccessRO:
		return errhint.With(errors.New("the workspace is read-only, so nothing can be committed in it"), "set sandbox.workspaceAccess to none or rw, or name no branch")
	}
	if _, err := relays.Load(w.Run); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, deliver.TakenAlready(w.Run))
	}
	return nil
}

// prepareBranch puts the project into the sandbox, where the tools then work.
func (w *Worker) prepareBranch(ctx context.Context) (err error) {
	b := w.branch
	if b == nil {
		return nil
	}
	work, err := b.relays.Prepare(ctx, b.project, deliver.SiteFor(w.Box.sandbox, deliver.StepBefore), b.key)
	if err != nil {
		return err
	}
	b.work = &deliver.AgentWork{
		Run: w.Run, Account: w.account, Agent: b.agent, Session: b.who.SessionKey,
		Work: *work, About: relay.About{Variant: run.HostAgent}, Held: true,
	}
	w.Box.Workdir = work.Dir
	w.Notices = append(w.Notices, work.Notes...)
	return deliver.AgentNotes(w.host.Settings).Save(w.Run, b.work)
}

func (w *Worker) branchName() string {
	if w.branch == nil {
		return ""
	}
	return w.branch.key.Branch()
}

// Deliver takes the agent's commits out of its sandbox and sends them, if it was
// to work on a branch; nil if not. Those of an agent that failed are kept.
func (w *Worker) Deliver(ctx context.Context, out *agent.Outcome, failure error) (*run.Delivery, error) {
	b := w.branch
	if b == nil {
		return nil, nil
	}
	b.ended = true
	ctx, cancel := context.WithTimeout(ctx, deliveryTime)
	defer cancel()
	spent, err := w.Spent(ctx)
	if err != nil {
		return nil, err
	}
	b.work.Held, b.work.About.Model, b.work.About.Cost = failure != nil, out.Model, deliver.Dollars(spent.MicroUSD)
	if err := deliver.AgentNotes(w.host.Settings).Save(w.Run, b.work); err != nil {
		return nil, err
	}
	record, note, err := w.host.commits.DeliverAgent(ctx, b.work, func(context.Context) (relay.Site, error) {
		return deliver.SiteFor(w.Box.sandbox, deliver.StepAfter), nil
	})
	if record != nil && record.Unsaved != "" {
		note += "; not taken, and still in the sandbox: " + record.Unsaved
	}
	d := deliver.DeliveryOf(&b.work.Work, record, note)
	if err != nil {
		d.Note = "not sent: " + err.Error()
		if record == nil {
			d.State = ""
		}
	}
	b.note = d.Note
	b.held.Release()
	return d, err
}

func (b *agentBranch) notes() map[string]string {
	if b == nil || b.note == "" {
		return nil
	}
	return map[string]string{deliver.NoteName: b.note}
}
