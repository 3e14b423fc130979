package serve

import (
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/model/usage"
	"github.com/atoll-run/atoll/internal/policy/settings"
)

// restSettings is the configuration for the gateway's callers.
type restSettings struct {
	parts    *Parts
	accounts func(context.Context) (map[string]bool, error)
}

// Config returns the settings of an agent without secrets.
func (r restSettings) Config(id string) (*api.Config, error) {
	if id == "" {
		id = r.parts.Config.DefaultAgent()
	}
	agent, err := r.parts.Config.Resolve(id)
	if err != nil {
		return nil, err
	}
	agent.Sandbox = settings.WithoutSecrets(r.parts.Config, agent)
	answer := &api.Config{Agent: id, Path: r.parts.Location.Path, Settings: []api.Setting{}}
	values := settings.Flatten(agent)
	for _, key := range slices.Sorted(maps.Keys(values)) {
		from := agent.Origins[key]
		answer.Settings = append(answer.Settings, api.Setting{Key: key, Value: values[key], Source: from.Source, Path: from.Path, Line: from.Line})
	}
	return answer, nil
}

// Images lists the images that need no engine.
func (r restSettings) Images(ctx context.Context) (list []api.Image, err error) {
	store, err := r.parts.Images()
	if err != nil {
		return nil, err
	}
	all, err := store.List(ctx)
	for _, i := range all {
		list = append(list, api.Image{ID: i.ID, Names: append([]string{}, i.Names...), Digest: i.Digest, Source: i.Source, OnHost: i.OnHost, Size: i.Size, Files: i.Files, Added: i.Added, UsedBy: len(i.UsedBy), Problem: i.Problem})
	}
	return list, err
}

// Accounts lists the accounts that something was done for, and who has none.
func (r restSettings) Accounts(ctx context.Context) ([]string, error) {
	all, err := r.accounts(ctx)
	if err != nil {
		return nil, err
	}
	return append([]string{""}, slices.Sorted(maps.Keys(all))...), nil
}

// Budgets returns what an account may spend by the configuration, and what it spent.
func (r restSettings) Budgets(ctx context.Context, account string) (list []api.SpendBudget, err error) {
	llm, err := r.parts.Config.LLM()
	if err != nil {
		return nil, err
	}
	ledger, err := r.parts.Models.Ledger(ctx)
	if err != nil {
		return nil, err
	}
	for _, b := range []struct {
		scope  usage.Scope
		key    string
		budget config.LLMBudget
	}{{usage.ScopeDay, usage.Day(account, time.Now()), llm.Day}, {usage.ScopeAccount, account, llm.Account}} {
		spent, err := ledger.Spent(ctx, b.scope, b.key)
		if err != nil {
			return nil, err
		}
		list = append(list, api.SpendBudget{
			Scope: string(b.scope), Account: account, MicroUSD: int64(math.Round(b.budget.USD * 1e6)), Tokens: b.budget.Tokens,
			SpentMicro: spent.MicroUSD, SpentTok: spent.Tokens.Total(), Unpriced: spent.Unpriced, FromConfig: "llm.budgets." + string(b.scope),
		})
	}
	return list, nil
}
