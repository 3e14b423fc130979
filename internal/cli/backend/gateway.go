package backend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/client"
	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/agent/envelope"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/errhint"
	money "github.com/atoll-run/atoll/internal/model/usage"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/run/execute"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// Gateway passes the work on to the running gateway.
type Gateway struct {
	Client   *client.Client
	Settings *provide.Settings
}

// List returns the runs that the gateway has, newest first.
func (g Gateway) List(ctx context.Context, f run.Filter) ([]run.Receipt, error) {
	page, err := g.Client.Runs(ctx, api.RunQuery{Limit: f.Most, Cursor: f.Before, Account: f.Account, GraphID: f.Variant, Open: f.Open})
	if p, ok := errors.AsType[*api.Problem](err); ok && f.Before != "" && p.Code == "invalid_request" {
		return nil, fmt.Errorf("run %s: %w", f.Before, run.ErrNotFound)
	}
	if err != nil {
		return nil, ProblemError(err)
	}
	list := make([]run.Receipt, 0, len(page.Runs))
	for i := range page.Runs {
		list = append(list, *receiptOf(&page.Runs[i]))
	}
	return list, nil
}

// Show returns one run, with the provider's bill once there is one.
func (g Gateway) Show(ctx context.Context, id string) (*run.Receipt, error) {
	r, err := g.Client.Run(ctx, id)
	if err != nil {
		return nil, ProblemError(err)
	}
	receipt := receiptOf(r)
	if receipt.Bill.Provisional {
		if cost, err := g.Client.Cost(ctx, id); err == nil {
			receipt.Bill = run.Bill(cost.Bill)
		}
	}
	return receipt, nil
}

// Events passes on the events of a run.
func (g Gateway) Events(ctx context.Context, id string, after int64, follow bool, tell func(*run.Event) error) error {
	pass := func(e api.Event) error {
		after = e.Seq
		return tell(eventOf(&e))
	}
	if follow {
		_, err := g.Client.Events(ctx, id, after, pass)
		return ProblemError(err)
	}
	for {
		page, err := g.Client.EventPage(ctx, id, after)
		if err != nil {
			return ProblemError(err)
		}
		for _, e := range page.Events {
			if err := pass(e); err != nil {
				return err
			}
		}
		if len(page.Events) == 0 {
			return nil
		}
	}
}

// Costs returns what runs cost.
func (g Gateway) Costs(ctx context.Context, f money.Filter) ([]money.RunCost, error) {
	q := api.CostQuery{Account: f.Account, Run: f.Run}
	if !f.Since.IsZero() {
		q.Since = f.Since.Format(time.RFC3339Nano)
	}
	costs, err := g.Client.Costs(ctx, q)
	if err != nil {
		return nil, ProblemError(err)
	}
	list := make([]money.RunCost, 0, len(costs.Runs))
	for _, c := range costs.Runs {
		list = append(list, money.RunCost(c))
	}
	return list, nil
}

// Start gives a task to the gateway and shows it until its end. Ctrl-C ends the run, as
// it ends one of this process.
func (g Gateway) Start(ctx context.Context, t *execute.Task, watch RunWatcher) (*run.Receipt, error) {
	begun, err := g.Client.Start(console.WithTrace(ctx, t.Trace, t.ID), runRequest(t), "")
	if err != nil {
		return nil, ProblemError(err)
	}
	over, err := g.Client.Events(ctx, begun.ID, 0, func(e api.Event) error {
		watch.Event(*eventOf(&e))
		return nil
	})
	if err != nil && ctx.Err() != nil {
		over, err = g.Client.Cancel(context.WithoutCancel(ctx), begun.ID)
	}
	if err != nil {
		return nil, ProblemError(err)
	}
	return receiptOf(over), nil
}

func runRequest(t *execute.Task) *api.RunRequest {
	r := &api.RunRequest{
		ID: t.ID, GraphID: t.Variant, Agent: t.AgentID, Account: t.Account, Model: t.Model, BranchName: t.Branch, Memory: t.Memory,
		Timeout: int(t.Timeout / time.Second), Budget: api.Budget{USD: float64(t.Budget.MicroUSD) / 1e6, Tokens: t.Budget.Tokens},
	}
	for _, m := range t.Messages {
		r.Messages = append(r.Messages, api.Message{Role: string(m.Role), Content: m.Text})
	}
	return r
}

// ProblemError returns a gateway's problem as the error that this process would give.
func ProblemError(err error) error {
	p, ok := errors.AsType[*api.Problem](err)
	if !ok {
		return err
	}
	switch p.Code {
	case "run_not_found":
		return fmt.Errorf("%s: %w", p.Detail, run.ErrNotFound)
	case "run_id_used":
		return run.ErrIDReused
	case "unknown_variant", "memory_too_large", "prompt_empty", "prompt_too_large", "prompt_not_text":
		return errhint.With(&run.Failure{Code: p.Code, Message: p.Detail}, p.Hint)
	}
	if known := knownError(p); known != nil {
		return known
	}
	if p.Status < http.StatusInternalServerError {
		return errhint.With(fmt.Errorf("the gateway: %w", p), p.Hint)
	}
	return errhint.With(fmt.Errorf("the gateway: %w", p), cmp.Or(p.Hint, "the gateway's log has more, for request "+p.RequestID))
}

func receiptOf(r *api.Run) *run.Receipt {
	return &run.Receipt{
		Agent: r.Agent, Task: r.Task, Branch: r.Branch, Trace: r.Trace,
		ID: r.ID, KnownAs: r.KnownAs, Variant: r.GraphID, Account: r.Account, Model: r.Model, Sandbox: r.Sandbox, Image: r.Image, Step: run.Step(r.Step), Text: r.Text,
		Error: (*run.Failure)(r.Error), Bill: run.Bill(r.Bill),
		SelfReport: run.SelfReport{Session: r.SelfReport.Session, Provider: r.SelfReport.Provider, Model: r.SelfReport.Model, Usage: envelope.Usage(r.SelfReport.Usage)},
		PeakMemory: r.PeakMemory, Notes: r.Notes, Delivery: (*run.Delivery)(r.Delivery), Changes: (*run.Changes)(r.Changes), Created: r.Created, Started: r.Started, Ended: r.Ended, Warnings: r.Warnings,
	}
}

func eventOf(e *api.Event) *run.Event {
	return &run.Event{
		Seq: e.Seq, At: e.At, Type: e.Type, Text: e.Text, Step: run.Step(e.Step), Call: (*chat.Call)(e.Call), IsError: e.IsError, TookMs: e.TookMs,
		Usage: (*chat.Usage)(e.Usage), Bill: (*run.Bill)(e.Bill), Error: (*run.Failure)(e.Error), Notes: e.Notes,
	}
}
