package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/model/billing"
	"github.com/atoll-run/atoll/internal/model/litellm"
	proxy "github.com/atoll-run/atoll/internal/model/proxy"
	"github.com/atoll-run/atoll/internal/model/usage"
	"github.com/atoll-run/atoll/internal/outbound"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// LiteLLM is a client of a provider's own accounts.
func LiteLLM(s *provide.Settings, p *config.LLMProvider) (*litellm.Client, error) {
	return litellmFor(s, p, p.Admin)
}

func litellmFor(s *provide.Settings, p *config.LLMProvider, k config.LLMKey) (*litellm.Client, error) {
	key, err := s.KeySource(k)
	if err != nil {
		return nil, fmt.Errorf("provider %s: %w", p.Name, err)
	}
	host, err := s.Outbound()
	if err != nil {
		return nil, err
	}
	transport := host.Transport()
	if p.CAFile != "" {
		if transport.TLSClientConfig, err = outbound.TrustOnly(p.CAFile); err != nil {
			return nil, fmt.Errorf("provider %s: %w", p.Name, err)
		}
	}
	return litellm.New(litellm.Options{URL: p.URL, Key: key, HTTP: transport}), nil
}

// Reconcile compares the ledger with every LiteLLM that is configured, by the
// provider's name.
func (a *Service) Reconcile(ctx context.Context, o billing.Options) (map[string]*billing.Report, error) {
	llm, err := a.Config.LLM()
	if err != nil {
		return nil, err
	}
	ledger, err := a.Ledger(ctx)
	if err != nil {
		return nil, err
	}
	o.Grace = time.Duration(llm.Billing.GraceSeconds) * time.Second
	o.Retry = time.Duration(llm.Billing.RetrySeconds) * time.Second
	reports := map[string]*billing.Report{}
	for i := range llm.Providers {
		p := &llm.Providers[i]
		if p.Kind != config.DefaultLLMProvider {
			continue
		}
		client, err := LiteLLM(a.Settings, p)
		if err != nil {
			return nil, err
		}
		o.Covers = func(c *usage.Stored) bool { return providerOf(&llm, c.Asked) == p }
		o.Payer = func(c *usage.Stored) string {
			return cmp.Or(c.Subject.Account, proxy.EndUser(a.ID, c.Subject.Agent))
		}
		if reports[p.Name], err = billing.Reconcile(ctx, ledger, client, o); err != nil {
			return nil, fmt.Errorf("provider %s: %w", p.Name, err)
		}
	}
	if len(reports) == 0 {
		return nil, errhint.With(errors.New("no provider of kind litellm is configured"), "only LiteLLM keeps logs to compare with: see llm.providers")
	}
	return reports, a.renewBills(ctx, o.Since)
}

// billsBack is how long before the first call that is compared a run may have begun.
const billsBack = 24 * time.Hour

// renewBills writes the bills of runs anew that were provisional: what was found
// since counts everywhere.
func (a *Service) renewBills(ctx context.Context, since time.Time) error {
	book := a.RunStore()
	ids, err := book.Provisional(ctx, since.Add(-billsBack))
	if err != nil {
		return err
	}
	for _, id := range ids {
		bill, err := a.RunBill(ctx, id, 0)
		if err != nil {
			return err
		}
		if err := book.SetBill(ctx, id, bill); err != nil {
			return err
		}
	}
	return nil
}

// providerOf returns the provider of a model: the one that names it most exactly,
// else the first that names none. The model of the demonstration has only its own.
func providerOf(llm *config.LLM, model string) *config.LLMProvider {
	var found *config.LLMProvider
	best := -1
	for i := range llm.Providers {
		p := &llm.Providers[i]
		if len(p.Models) == 0 && best < 0 && found == nil && model != scriptedModel {
			found = p
		}
		for _, pattern := range p.Models {
			prefix, open := strings.CutSuffix(pattern, "*")
			fits := pattern == model || open && strings.HasPrefix(model, prefix)
			if fits && len(pattern) > best {
				found, best = p, len(pattern)
			}
		}
	}
	return found
}
