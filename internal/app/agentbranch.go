package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/atoll-run/atoll/internal/advice"
	"github.com/atoll-run/atoll/internal/agent"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/lease"
	"github.com/atoll-run/atoll/internal/relay"
	"github.com/atoll-run/atoll/internal/relay/branch"
	"github.com/atoll-run/atoll/internal/run"
)

// deliveryTime bounds what is done with commits after an agent has ended.
const deliveryTime = 5 * time.Minute

// agentBranch is the branch that an agent on the host works on.
type agentBranch struct {
	key     branch.Key
	relays  *Relays
	project *relay.Project
	held    *lease.Lease
	work    *relay.Work
	note    string // what became of its commits
}

// awaitBranch has the branch for this agent alone. What could go nowhere is
// refused before anything is made.
func (w *Worker) awaitBranch(ctx context.Context, o *AgentOptions) (err error) {
	if o.Branch == "" {
		return nil
	}
	b := &agentBranch{key: branch.Key(o.Branch)}
	if b.relays, b.project, err = w.app.relayFor(o.Who.Account); err != nil {
		return err
	}
	if err := w.canCommit(o, b.relays); err != nil {
		return err
	}
	tell := func(text string) {
		if o.Watch != nil {
			o.Watch(agent.Event{Type: agent.Notice, Text: text})
		}
	}
	if b.held, err = w.app.holdBranch(ctx, o.Branch, tell); err != nil {
		return err
	}
	w.branch = b
	w.undo = append(w.undo, func() error { b.held.Release(); return nil })
	return nil
}

// canCommit refuses agents whose commits could not be taken.
func (w *Worker) canCommit(o *AgentOptions, relays *Relays) error {
	p, err := w.app.Plan(o.Who)
	if err != nil {
		return err
	}
	switch {
	case !p.Sandboxed:
		return advice.With(errors.New("commits are taken out of sandboxes only, and this session has none"), "set sandbox.mode to all, or name no branch")
	case p.Layout.Access == config.AccessRO:
		return advice.With(errors.New("the workspace is read-only, so nothing can be committed in it"), "set sandbox.workspaceAccess to none or rw, or name no branch")
	}
	if _, err := relays.Load(w.Run); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, advice.With(fmt.Errorf("the commits of a run %s were taken already", w.Run), "choose another --run-id"))
	}
	return nil
}

// prepareBranch puts the project into the sandbox, where the tools then work.
func (w *Worker) prepareBranch(ctx context.Context) (err error) {
	b := w.branch
	if b == nil {
		return nil
	}
	if b.work, err = b.relays.Prepare(ctx, b.project, w.Box.session.relaySite(relayBefore), b.key); err != nil {
		return err
	}
	w.Box.Workdir = b.work.Dir
	w.Notices = append(w.Notices, b.work.Notes...)
	return nil
}

func (w *Worker) branchName() string {
	if w.branch == nil {
		return ""
	}
	return w.branch.key.Branch()
}

// Delivery is what became of an agent's commits.
type Delivery struct {
	Branch string
	Step   relay.Step // "" if nothing could be taken
	Pull   string     // the pull request's address; "" if there is none
	Note   string     // all of it in words
}

// Deliver takes the agent's commits out of its sandbox and sends them, if it was
// to work on a branch; nil if not. Those of an agent that failed are kept.
func (w *Worker) Deliver(ctx context.Context, out *agent.Outcome, failure error) (*Delivery, error) {
	b := w.branch
	if b == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, deliveryTime)
	defer cancel()
	spent, err := w.Spent(ctx)
	if err != nil {
		return nil, err
	}
	record, note, err := w.app.deliver(ctx, &delivery{
		site: func(context.Context) (relay.Site, error) { return w.Box.session.relaySite(relayAfter), nil },
		order: relay.Order{
			Run: w.Run, Account: w.account, Work: *b.work, Held: failure != nil,
			About: relay.About{Model: out.Model, Variant: run.HostAgent, Cost: dollars(spent.MicroUSD)},
		},
	})
	d := &Delivery{Branch: b.key.Branch(), Note: note}
	if record != nil {
		d.Step, d.Pull = record.Step, record.PullURL
	}
	if err != nil {
		d.Note = "not sent: " + err.Error()
	}
	b.note = d.Note
	b.held.Release()
	return d, err
}

func (b *agentBranch) notes() map[string]string {
	if b == nil || b.note == "" {
		return nil
	}
	return map[string]string{relayFinisher{}.Name(): b.note}
}
