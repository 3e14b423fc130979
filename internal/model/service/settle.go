package service

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/model/billing"
	"github.com/atoll-run/atoll/internal/model/usage"
	"github.com/atoll-run/atoll/internal/run"
)

// settleFor is how long after its grace a call is still looked for upstream by
// itself; later `atoll billing reconcile` looks for it.
const settleFor = 10 * time.Minute

// SettleCalls takes over LiteLLM's figures for calls whose bill is not known, as
// they are written down there, until the context ends.
func (a *Service) SettleCalls(ctx context.Context) {
	llm, err := a.Config.LLM()
	if err != nil || !a.keepsBooks(&llm) {
		return
	}
	tick := time.NewTicker(time.Duration(llm.Billing.RetrySeconds) * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := a.settleOnce(ctx, &llm); err != nil && ctx.Err() == nil {
			a.Logger.WarnContext(ctx, "calls of models are not settled yet", "error", err)
		}
	}
}

func (a *Service) settleOnce(ctx context.Context, llm *config.LLM) error {
	ledger, err := a.Ledger(ctx)
	if err != nil {
		return err
	}
	since := time.Now().Add(-settleFor - time.Duration(llm.Billing.GraceSeconds)*time.Second)
	first, err := ledger.Unbilled(ctx, since)
	if err != nil || first.IsZero() {
		return err
	}
	_, err = a.Reconcile(ctx, billing.Options{Since: first})
	return err
}

// SettleRuns takes over LiteLLM's figures for runs of the last day whose bill is
// provisional, within so much time, and reports whether there was any such.
func (a *Service) SettleRuns(ctx context.Context, list []run.Receipt, patience time.Duration) bool {
	var since time.Time
	for i := range list {
		r := &list[i]
		if r.Bill.Provisional && time.Since(r.Created) < settleBack && (since.IsZero() || r.Created.Before(since)) {
			since = r.Created
		}
	}
	if since.IsZero() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if _, err := a.Reconcile(ctx, billing.Options{Since: since.Add(-settleMargin)}); err != nil {
		a.Logger.WarnContext(ctx, "bills of runs are provisional", "error", err)
	}
	return true
}

// settleMargin is how long before the beginning that a receipt tells its first call
// may have been made: it is reckoned back from when the receipt was written.
const settleMargin = time.Hour

// settleBack is how long a run's bill is looked for when runs are listed.
const settleBack = 24 * time.Hour

// keepsBooks reports whether there is a LiteLLM that can be asked.
func (a *Service) keepsBooks(llm *config.LLM) bool {
	if llm.Default && a.Getenv(config.DefaultLLMKey) == "" {
		return false
	}
	for i := range llm.Providers {
		if llm.Providers[i].Kind == config.DefaultLLMProvider {
			return true
		}
	}
	return false
}

// RunCosts returns what runs have spent. A run may be named by the id that who
// asked for it knows.
func (a *Service) RunCosts(ctx context.Context, f usage.Filter) ([]usage.RunCost, error) {
	ledger, err := a.Ledger(ctx)
	if err != nil {
		return nil, err
	}
	if f.Run != "" {
		f.Run = a.RunStore().Resolve(ctx, f.Run, f.Account)
	}
	costs, err := ledger.Runs(ctx, f)
	for i := range costs {
		costs[i].Run = a.RunStore().KnownAs(ctx, costs[i].Run)
	}
	return costs, err
}
