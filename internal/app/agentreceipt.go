package app

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/agent"
	"github.com/atoll-run/atoll/internal/agent/envelope"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/usage"
	"github.com/atoll-run/atoll/internal/usage/billing"
)

// Keep writes down the receipt of what the agent did: what `atoll runs show` has.
// An agent inside a sandbox leaves that to the run it belongs to.
func (w *Worker) Keep(ctx context.Context, out *agent.Outcome, failure error) error {
	if inside() {
		return nil
	}
	if _, err := w.Spent(ctx); err != nil {
		return err
	}
	bill, err := billing.ReceiptOf(ctx, w.ledger, w.Run)
	if err != nil {
		return err
	}
	calls, err := w.ledger.Calls(ctx, usage.Filter{Run: w.Run})
	if err != nil {
		return err
	}
	r := w.receipt(out, failure)
	r.Bill = billOf(bill, w.app.hasUpstreamBooks(calls))
	return w.app.RunStore().Keep(ctx, r)
}

func (w *Worker) receipt(out *agent.Outcome, failure error) *run.Receipt {
	ended := time.Now().UTC()
	r := &run.Receipt{
		ID: w.Run, Account: w.account, Model: out.Model, Text: out.Text,
		Told:    run.Told{Session: w.Session, Model: out.Model, Usage: envelope.Usage{Input: out.Usage.Input, Output: out.Usage.Output, Total: out.Usage.Total()}},
		Notes:   w.branch.notes(),
		Created: ended.Add(-out.Took), Started: ended.Add(-out.Took), Ended: ended,
	}
	if r.Model == "" {
		r.Model = w.Models[0].Name
	}
	if w.Plan.Sandboxed {
		r.Sandbox = w.Plan.Spec.Name
	}
	if failure != nil {
		r.Error = &run.Failure{Code: agent.CodeOf(failure), Message: failure.Error()}
	}
	return r
}
