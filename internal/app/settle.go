package app

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/usage"
	"github.com/atoll-run/atoll/internal/usage/billing"
)

// settleFor is how long after its grace a call is still looked for upstream by
// itself; later `atoll billing reconcile` looks for it.
const settleFor = 10 * time.Minute

// SettleCalls takes over LiteLLM's figures for calls whose bill is not known, as
// they are written down there, until the context ends.
func (a *App) SettleCalls(ctx context.Context) {
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
			a.logger.WarnContext(ctx, "calls of models are not settled yet", "error", err)
		}
	}
}

func (a *App) settleOnce(ctx context.Context, llm *config.LLM) error {
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

// keepsBooks reports whether there is a LiteLLM that can be asked.
func (a *App) keepsBooks(llm *config.LLM) bool {
	if llm.Default && a.getenv(config.DefaultLLMKey) == "" {
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
func (a *App) RunCosts(ctx context.Context, f usage.Filter) ([]usage.RunCost, error) {
	ledger, err := a.Ledger(ctx)
	if err != nil {
		return nil, err
	}
	if f.Run != "" {
		f.Run = a.RunStore().Resolve(ctx, f.Run)
	}
	return ledger.Runs(ctx, f)
}
