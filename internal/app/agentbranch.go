package app

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/atoll-run/atoll/internal/agent"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/relay"
	"github.com/atoll-run/atoll/internal/relay/branch"
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
	relays  *Relays
	project *relay.Project
	held    *filelock.Lease
	work    *AgentWork
	note    string // what became of its commits
	ended   bool   // the agent has begun, and ended
}

// AgentWork is a branch that an agent on the host works on, in its session's
// sandbox. It is written down before the agent begins, so that whoever finds it
// without its process can take what was committed.
type AgentWork struct {
	Run     string      `json:"run"`
	Account string      `json:"account,omitempty"`
	Agent   string      `json:"agent,omitempty"`
	Session string      `json:"session,omitempty"`
	Work    relay.Work  `json:"work"`
	About   relay.About `json:"about"`
	// Held says that nothing is pushed unless a person wants it: true until the
	// agent has ended well.
	Held bool `json:"held"`
}

func agentNotes(s *provide.Settings) workNotes[AgentWork] {
	return workNotes[AgentWork]{filepath.Join(s.Paths.AtollState, RelayDir, "agents")}
}

func (a *App) agentWorks(ctx context.Context) []*AgentWork {
	works, err := agentNotes(a.Settings).list()
	if err != nil {
		a.Logger.WarnContext(ctx, "branches of agents", "error", err)
	}
	return works
}

// takeAgent takes the commits of an agent whose process is gone out of the
// sandbox that its session has, and sends those of one that had ended well. The
// caller holds the branch.
func (a *App) takeAgent(ctx context.Context, w *AgentWork) (*relay.Record, string, error) {
	leave := func() {}
	defer func() { leave() }()
	return a.deliverAgent(ctx, w, func(ctx context.Context) (relay.Site, error) {
		s, err := a.Provide(ctx, provide.Subject{AgentID: w.Agent, SessionKey: w.Session, Account: w.Account}, provide.Options{})
		if err != nil {
			return relay.Site{}, err
		}
		leave = s.Release
		return relaySite(s, relayAfter), nil
	})
}

// deliverAgent takes the commits and forgets the note when that is done: from
// then on the record of the relay is what there is to know.
func (a *App) deliverAgent(ctx context.Context, w *AgentWork, site func(context.Context) (relay.Site, error)) (*relay.Record, string, error) {
	record, note, err := a.deliver(ctx, &delivery{
		site: site, order: relay.TakeRequest{Run: w.Run, Account: w.Account, Agent: w.Agent, Work: w.Work, Held: w.Held, About: w.About},
	})
	if err != nil && record == nil {
		return nil, "", err
	}
	return record, note, errors.Join(err, agentNotes(a.Settings).remove(w.Run))
}

// awaitBranch has the branch for this agent alone. What could go nowhere is
// refused before anything is made.
func (w *Worker) awaitBranch(ctx context.Context, o *AgentOptions) (err error) {
	if o.Branch == "" {
		return nil
	}
	p, err := w.app.Plan(o.Who)
	if err != nil {
		return err
	}
	b := &agentBranch{key: branch.Key(o.Branch), who: o.Who, agent: p.Agent.ID}
	if b.relays, b.project, err = w.app.relayFor(RelayFor{o.Who.Account, b.agent, o.Checkout}); err != nil {
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
	if b.held, err = w.app.holdBranch(ctx, branchClaim{key: b.key, run: w.Run, tell: tell}); err != nil {
		return err
	}
	w.branch = b
	w.undo = append(w.undo, func() error { return w.app.leaveBranch(b) })
	return nil
}

// leaveBranch gives a branch back. Of an agent that never began nothing is left.
func (a *App) leaveBranch(b *agentBranch) (err error) {
	if b.work != nil && !b.ended {
		err = agentNotes(a.Settings).remove(b.work.Run)
	}
	b.held.Release()
	return err
}

// canCommit refuses agents whose commits could not be taken.
func (w *Worker) canCommit(p *plan.Plan, relays *Relays) error {
	switch {
	case !p.Sandboxed:
		return errhint.With(errors.New("commits are taken out of sandboxes only, and this session has none"), "set sandbox.mode to all, or name no branch")
	case p.Layout.Access == config.AccessRO:
		return errhint.With(errors.New("the workspace is read-only, so nothing can be committed in it"), "set sandbox.workspaceAccess to none or rw, or name no branch")
	}
	if _, err := relays.Load(w.Run); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, takenAlready(w.Run))
	}
	return nil
}

// prepareBranch puts the project into the sandbox, where the tools then work.
func (w *Worker) prepareBranch(ctx context.Context) (err error) {
	b := w.branch
	if b == nil {
		return nil
	}
	work, err := b.relays.Prepare(ctx, b.project, relaySite(w.Box.session, relayBefore), b.key)
	if err != nil {
		return err
	}
	b.work = &AgentWork{
		Run: w.Run, Account: w.account, Agent: b.agent, Session: b.who.SessionKey,
		Work: *work, About: relay.About{Variant: run.HostAgent}, Held: true,
	}
	w.Box.Workdir = work.Dir
	w.Notices = append(w.Notices, work.Notes...)
	return agentNotes(w.app.Settings).save(w.Run, b.work)
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
	b.work.Held, b.work.About.Model, b.work.About.Cost = failure != nil, out.Model, dollars(spent.MicroUSD)
	if err := agentNotes(w.app.Settings).save(w.Run, b.work); err != nil {
		return nil, err
	}
	record, note, err := w.app.deliverAgent(ctx, b.work, func(context.Context) (relay.Site, error) { return relaySite(w.Box.session, relayAfter), nil })
	if record != nil && record.Unsaved != "" {
		note += "; not taken, and still in the sandbox: " + record.Unsaved
	}
	d := deliveryOf(&b.work.Work, record, note)
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
	return map[string]string{relayFinisher{}.Name(): b.note}
}
