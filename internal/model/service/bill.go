package service

import (
	"context"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/model/billing"
	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/model/usage"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

const (
	// SettlePatience is how long a run's end waits for LiteLLM to write its calls
	// down. What comes later is found by the next look at the run.
	SettlePatience = 10 * time.Second
	settleRetry    = 250 * time.Millisecond
)

// RunBill is what a run costs by the best word there is within so much time; with
// none, by our own books.
func (a *Service) RunBill(ctx context.Context, id string, patience time.Duration) (run.Bill, error) {
	ledger, err := a.Ledger(ctx)
	if err != nil {
		return run.Bill{}, err
	}
	calls, err := ledger.Calls(ctx, usage.Filter{Run: id})
	if err != nil {
		return run.Bill{}, err
	}
	kept := a.hasUpstreamBooks(calls)
	if kept && patience > 0 {
		a.reconcileRun(ctx, id, calls[0].At, patience)
		if calls, err = ledger.Calls(ctx, usage.Filter{Run: id}); err != nil {
			return run.Bill{}, err
		}
	}
	return billOf(billing.Sum(id, calls), kept), nil
}

// billOf turns a receipt into the bill of a run. Without a LiteLLM to compare with,
// our own figures are final.
func billOf(r *billing.Receipt, kept bool) run.Bill {
	b := run.Bill{
		MicroUSD: r.MicroUSD, Input: r.Tokens.Input + r.Tokens.CachedInput + r.Tokens.CacheWrite, Output: r.Tokens.Output,
		Calls: r.Calls, Unpriced: r.Unpriced, Provisional: r.Provisional && kept, Source: "prices",
	}
	switch {
	case r.Calls == 0:
		b.Source = "none"
	case r.Billed == r.Calls:
		b.Source = config.DefaultLLMProvider
	}
	return b
}

// hasUpstreamBooks reports whether any call went to a LiteLLM, which keeps books.
func (a *Service) hasUpstreamBooks(calls []usage.Stored) bool {
	llm, err := a.Config.LLM()
	if err != nil || !a.keepsBooks(&llm) {
		return false
	}
	for i := range calls {
		if p := providerOf(&llm, calls[i].Asked); p != nil && p.Kind == config.DefaultLLMProvider {
			return true
		}
	}
	return false
}

// reconcileRun asks until every call was found, or patience ends. That LiteLLM
// cannot be asked leaves the bill as we know it.
func (a *Service) reconcileRun(ctx context.Context, id string, since time.Time, patience time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		reports, err := a.Reconcile(ctx, billing.Options{Run: id, Since: since})
		if err != nil {
			a.Logger.WarnContext(ctx, "the bill of a run is provisional", "run", id, "error", err)
			return
		}
		if !anyPending(reports) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(settleRetry):
		}
	}
}

func anyPending(reports map[string]*billing.Report) bool {
	for _, r := range reports {
		if r.Pending > 0 {
			return true
		}
	}
	return false
}

// RunStore is what is written down about runs.
func (a *Service) RunStore() run.Store { return run.Store{DB: a.DB} }

// KeepCommand settles what a command did cost that could ask models, as a run is
// settled, and writes its receipt down. One that asked nothing leaves none.
func (m *Proxy) KeepCommand(ctx context.Context, terms *grant.Terms, in *provide.ReadySandbox, began time.Time) (run.Bill, error) {
	if err := m.WaitIdle(ctx, terms.Run); err != nil {
		return run.Bill{}, err
	}
	bill, err := m.service.RunBill(ctx, terms.Run, SettlePatience)
	if err != nil || bill.Calls == 0 {
		return bill, err
	}
	return bill, m.service.RunStore().SaveFinished(ctx, &run.Receipt{
		ID: terms.Run, Variant: run.HostCommand, Account: terms.Account, Model: strings.Join(terms.Models, ", "), Sandbox: in.Name, Image: in.Plan.Spec.Image,
		Bill: bill, Created: began.UTC(), Started: began.UTC(), Ended: time.Now().UTC(),
	})
}
