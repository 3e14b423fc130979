package service

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"sync"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/metrics"
	"github.com/atoll-run/atoll/internal/model/usage"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/secret"
)

// Service opens the proxy to models, and keeps account of what they cost. Ledger
// and audit log are opened when they are first used.
type Service struct {
	*provide.Installation
	metrics metrics.Registry
	// OnCall, if set, is told of every request to a model that is over, or was refused.
	OnCall func(*audit.ModelRequest)

	mu     sync.Mutex
	ledger *usage.Ledger
	prices *usage.Prices
	audit  *MeteredLog
}

// New returns the models of an installation. Close it before the installation.
func New(installation *provide.Installation) *Service { return &Service{Installation: installation} }

// Close writes everything down, the audit log last: it records the rest.
func (a *Service) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	var err error
	if a.ledger != nil {
		err = a.ledger.Close()
	}
	if a.audit != nil {
		err = errors.Join(err, a.audit.Close())
	}
	a.ledger, a.audit = nil, nil
	return err
}

// Ledger opens the ledger of usage, once. It is closed by Close.
func (a *Service) Ledger(ctx context.Context) (*usage.Ledger, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ledger != nil {
		return a.ledger, nil
	}
	llm, err := a.Config.LLM()
	if err != nil {
		return nil, err
	}
	a.prices = usage.NewPrices(configuredPrices(&llm))
	o := a.usageOptions()
	o.Prices, o.CountUnpriced = a.prices, llm.Unpriced == "count"
	ledger, err := usage.Open(ctx, *o)
	if err != nil {
		return nil, err
	}
	watchLedger(&a.metrics, ledger)
	a.ledger = ledger
	return ledger, nil
}

// usageOptions say where usage is kept.
func (a *Service) usageOptions() *usage.Options {
	return &usage.Options{Dir: filepath.Join(a.Paths.AtollState, "usage"), DB: a.DB, Locks: a.Locks, Logger: a.Logger}
}

// RepairUsage mends a damaged journal of usage.
func (a *Service) RepairUsage(ctx context.Context) (*usage.Repaired, error) {
	return usage.Repair(ctx, a.usageOptions())
}

// CheckUsage returns an error if the journal of usage and the database disagree.
func (a *Service) CheckUsage(ctx context.Context) error { return usage.Check(ctx, a.usageOptions()) }

// ReplacePrices asks every LiteLLM of a configuration for its prices and takes them
// over; configured prices go before. The error names those that did not answer.
func (a *Service) ReplacePrices(ctx context.Context, llm *config.LLM) error {
	var problems error
	tables := []map[string]usage.Price{}
	for i := range llm.Providers {
		if llm.Providers[i].Kind != config.DefaultLLMProvider {
			continue
		}
		client, err := LiteLLM(a.Settings, &llm.Providers[i])
		if err != nil {
			problems = errors.Join(problems, err)
			continue
		}
		told, err := client.Prices(ctx)
		problems = errors.Join(problems, err)
		tables = append(tables, told)
	}
	a.prices.Replace(append(tables, configuredPrices(llm))...)
	return problems
}

func configuredPrices(llm *config.LLM) map[string]usage.Price {
	prices := map[string]usage.Price{}
	for model, p := range llm.Prices {
		price := usage.Price{Input: usage.PerMillion(p.Input), Output: usage.PerMillion(p.Output)}
		price.CachedInput, price.CacheWrite = price.Input, price.Input
		if p.CachedInput != nil {
			price.CachedInput = usage.PerMillion(*p.CachedInput)
		}
		if p.CacheWrite != nil {
			price.CacheWrite = usage.PerMillion(*p.CacheWrite)
		}
		prices[model] = price
	}
	return prices
}

// Limits are the budgets that hold for an agent's calls by the configuration. A
// grant's own budget comes on top of them.
func Limits(llm *config.LLM, agent *config.AgentLLM) []usage.Limit {
	var limits []usage.Limit
	for _, b := range []struct {
		scope  usage.Scope
		budget config.LLMBudget
	}{
		{usage.ScopeRun, agent.Run}, {usage.ScopeSession, agent.Session}, {usage.ScopeAgent, agent.Agent},
		{usage.ScopeAccount, llm.Account}, {usage.ScopeDay, llm.Day},
	} {
		if b.budget != (config.LLMBudget{}) {
			limits = append(limits, usage.Limit{Scope: b.scope, MicroUSD: int64(math.Round(b.budget.USD * 1e6)), Tokens: b.budget.Tokens})
		}
	}
	return limits
}

func keySources(s *provide.Settings, p *config.LLMProvider) (sources []secret.Source, err error) {
	for _, k := range p.Keys {
		source, err := s.KeySource(k)
		if err != nil {
			return nil, fmt.Errorf("provider %s: %w", p.Name, err)
		}
		sources = append(sources, source)
	}
	return sources, nil
}

// KeyPool reads the keys of a provider.
func KeyPool(ctx context.Context, s *provide.Settings, p *config.LLMProvider) (*secret.Pool, error) {
	sources, err := keySources(s, p)
	if err != nil {
		return nil, err
	}
	pool, err := secret.NewPool(ctx, secret.PoolOptions{}, sources...)
	if err != nil {
		return nil, fmt.Errorf("provider %s: %w", p.Name, err)
	}
	return pool, nil
}
