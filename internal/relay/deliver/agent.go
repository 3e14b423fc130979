package deliver

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/atoll-run/atoll/internal/relay"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// AgentWork is a branch that an agent on the host works on, in its session's
// sandbox. It is written down before the agent begins, so that a later
// process can take what was committed.
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

// AgentNotes are the notes of branches that agents on the host work on.
func AgentNotes(s *provide.Settings) Notes[AgentWork] {
	return Notes[AgentWork]{filepath.Join(s.Paths.AtollState, Dir, "agents")}
}

func (d *Deliverer) agentWorks(ctx context.Context) []*AgentWork {
	works, err := AgentNotes(d.Settings).list()
	if err != nil {
		d.Logger.WarnContext(ctx, "branches of agents", "error", err)
	}
	return works
}

// takeAgent takes the commits of an agent whose process is gone out of the
// sandbox that its session has, and sends those of one that had ended well. The
// caller holds the branch.
func (d *Deliverer) takeAgent(ctx context.Context, w *AgentWork) (*relay.Record, string, error) {
	leave := func() {}
	defer func() { leave() }()
	return d.DeliverAgent(ctx, w, func(ctx context.Context) (relay.Site, error) {
		s, err := d.Provide(ctx, provide.Subject{AgentID: w.Agent, SessionKey: w.Session, Account: w.Account}, provide.Options{})
		if err != nil {
			return relay.Site{}, err
		}
		leave = s.Release
		return SiteFor(s, StepAfter), nil
	})
}

// DeliverAgent takes the commits and forgets the note when that is done: from
// then on the record of the relay is what there is to know.
func (d *Deliverer) DeliverAgent(ctx context.Context, w *AgentWork, site func(context.Context) (relay.Site, error)) (*relay.Record, string, error) {
	record, note, err := d.Deliver(ctx, &Delivery{
		Site: site, Order: relay.TakeRequest{Run: w.Run, Account: w.Account, Agent: w.Agent, Work: w.Work, Held: w.Held, About: w.About},
	})
	if err != nil && record == nil {
		return nil, "", err
	}
	return record, note, errors.Join(err, AgentNotes(d.Settings).Remove(w.Run))
}
