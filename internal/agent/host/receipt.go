package host

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/agent"
	"github.com/atoll-run/atoll/internal/agent/envelope"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/gateway/session"
	"github.com/atoll-run/atoll/internal/model/usage"
	"github.com/atoll-run/atoll/internal/run"
)

// agentPatience is how long the end of an agent waits for the provider's figures:
// a person is waiting. What comes later is found by the next look at the receipt.
const agentPatience = time.Second

// Place is where the agent works, and whom it asks first.
func (w *Worker) Place() *session.Location {
	p := &session.Location{Run: w.Run, Model: w.Models[0].Name, Notices: w.Notices}
	if s := w.Plan.Spec; w.Plan.Sandboxed && s != nil {
		p.Sandbox, p.Backend, p.Image, p.Network, p.Workdir = s.Name, s.Backend, s.Image, s.Network, s.Workdir
		p.Access, p.Limits = string(w.Plan.Layout.Access), w.BoxLimits()
	}
	return p
}

// Report is what there is to tell of the agent's work beside its answer.
func (w *Worker) Report(out *agent.Outcome, spent usage.Charge, d *run.Delivery, undelivered error) *session.Report {
	place := w.Place()
	return &session.Report{
		Run: w.Run, Sandbox: place.Sandbox, Backend: place.Backend, Image: place.Image, Model: place.Model, Turns: out.Turns, Calls: out.Calls,
		TookMs: float64(out.Took.Microseconds()) / 1000, Unpriced: spent.Unpriced,
		Delivery: delivered(d, undelivered),
	}
}

// delivered is what became of commits, also if they could not be sent.
func delivered(d *run.Delivery, err error) *session.Delivery {
	if d == nil && err == nil {
		return nil
	}
	if d == nil {
		d = &run.Delivery{}
	}
	t := &session.Delivery{Branch: d.Branch, State: d.State, Pull: d.Pull, Note: d.Note, Hint: errhint.Of(err)}
	if err != nil {
		t.Error = err.Error()
	}
	return t
}

// Keep writes down the receipt of what the agent did: what `atoll runs show` has.
// An agent inside a sandbox leaves that to the run it belongs to.
func (w *Worker) Keep(ctx context.Context, out *agent.Outcome, failure error) error {
	if inside() {
		return nil
	}
	return w.KeepWithin(ctx, out, failure, agentPatience)
}

// KeepWithin waits so long for the provider's figures; with no patience it does not ask.
func (w *Worker) KeepWithin(ctx context.Context, out *agent.Outcome, failure error, patience time.Duration) error {
	if err := w.endModels(); err != nil {
		return err
	}
	bill, err := w.host.models.RunBill(ctx, w.Run, patience)
	if err != nil {
		return err
	}
	r := w.receipt(out, failure)
	r.Bill = bill
	return w.host.models.RunStore().SaveFinished(ctx, r)
}

func (w *Worker) receipt(out *agent.Outcome, failure error) *run.Receipt {
	ended := time.Now().UTC()
	r := &run.Receipt{
		ID: w.Run, KnownAs: w.knownAs, Account: w.account, Session: w.key, Model: out.Model, Text: out.Text,
		SelfReport: run.SelfReport{Session: w.Session, Model: out.Model, Usage: envelope.Usage{Input: out.Usage.Input, Output: out.Usage.Output, Total: out.Usage.Total()}},
		Notes:      w.branch.notes(),
		Created:    ended.Add(-out.Took), Started: ended.Add(-out.Took), Ended: ended,
	}
	if r.Model == "" {
		r.Model = w.Models[0].Name
	}
	if w.Plan.Sandboxed {
		r.Sandbox, r.Image = w.Plan.Spec.Name, w.Plan.Spec.Image
	}
	if failure != nil {
		r.Error = &run.Failure{Code: agent.CodeOf(failure), Message: failure.Error()}
	}
	return r
}
