// Package service opens the proxy to models in front of the configured providers,
// with their keys, and keeps account of what models cost.
package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/model/proxy"
	"github.com/atoll-run/atoll/internal/model/proxy/ask"
	"github.com/atoll-run/atoll/internal/model/usage"
	"github.com/atoll-run/atoll/internal/outbound"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/secret"
)

// Proxy is the proxy of this process: keys, budgets, ledger and audit log in
// front of the providers that are configured.
type Proxy struct {
	*proxy.Server
	service *Service
	Config  config.LLM
	pools   []*secret.Pool
	made    runKeys
	stop    context.CancelFunc
	work    sync.WaitGroup
	after   func() error // what to end last; may be nil
	unscrub func()       // ends that the audit log scrubs the keys
}

// pricePatience is how long providers have to tell their prices.
const pricePatience = 5 * time.Second

// OpenProxy opens the proxy. Close it before the Service.
func (a *Service) OpenProxy(ctx context.Context) (*Proxy, error) {
	cfg, err := a.Config.LLM()
	if err != nil {
		return nil, err
	}
	return a.openProxy(ctx, cfg)
}

// OpenProxyWith opens the proxy with a configuration that a caller adjusted.
func (a *Service) OpenProxyWith(ctx context.Context, cfg config.LLM) (*Proxy, error) {
	return a.openProxy(ctx, cfg)
}

func (a *Service) openProxy(ctx context.Context, cfg config.LLM) (*Proxy, error) {
	m := &Proxy{service: a, Config: cfg}
	ledger, err := a.Ledger(ctx)
	if err != nil {
		return nil, err
	}
	providers, err := m.providers(ctx)
	if err != nil {
		return nil, err
	}
	log, err := a.AuditLog()
	if err != nil {
		return nil, err
	}
	m.unscrub = log.AddScrubber(m.Scrub)
	if !m.Scripted() {
		m.learnPrices(ctx)
	}
	m.Server, err = proxy.New(proxy.Options{
		Providers: providers, Ledger: ledger, Audit: log, Logger: a.Logger, MaxBody: cfg.Limits.BodyBytes,
		MaxPerCaller: cfg.Limits.Requests, MaxN: int64(cfg.Limits.Choices), MaxOutput: int64(cfg.Limits.MaxOutputTokens),
		Installation: a.ID, Allowed: ask.NewAllowed(cfg.AllowMembers, cfg.AllowTools),
		WireLost: func(err error) bool { return errors.Is(err, machine.ErrLost) },
	})
	if err != nil {
		m.unscrub()
		return nil, err
	}
	var background context.Context
	background, m.stop = context.WithCancel(context.WithoutCancel(ctx))
	m.keepKeys(background)
	if m.makesKeys() {
		m.work.Go(func() { m.endLeftKeys(background) })
	}
	return m, nil
}

// learnPrices asks LiteLLM. That it cannot be asked is no reason not to start:
// without prices, budgets of money refuse.
func (m *Proxy) learnPrices(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pricePatience)
	defer cancel()
	if err := m.service.ReplacePrices(ctx, &m.Config); err != nil {
		m.service.Logger.WarnContext(ctx, "prices could not be asked for", "error", err)
	}
}

func (m *Proxy) providers(ctx context.Context) (all []proxy.Provider, err error) {
	milliseconds := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	times := &m.Config.Timeouts
	host, err := m.service.Settings.Outbound()
	if err != nil {
		return nil, err
	}
	for i := range m.Config.Providers {
		p := &m.Config.Providers[i]
		pool, err := KeyPool(ctx, m.service.Settings, p)
		if err != nil {
			return nil, err
		}
		m.pools = append(m.pools, pool)
		up := proxy.Upstream{
			URL: p.URL, Host: host, ConnectTimeout: milliseconds(times.ConnectMs), HeaderTimeout: milliseconds(times.HeaderMs),
			IdleTimeout: milliseconds(times.IdleMs), TotalTimeout: milliseconds(times.TotalMs),
			OmitIdentity: p.Kind != config.DefaultLLMProvider,
		}
		switch {
		case p.Kind == "anthropic" && !p.Bearer:
			up.Header = "x-api-key"
		case p.Kind == "google":
			up.Header = "x-goog-api-key"
		}
		up.Beta = p.Beta
		if p.CAFile != "" {
			if up.TLS, err = outbound.TrustOnly(p.CAFile); err != nil {
				return nil, fmt.Errorf("provider %s: %w", p.Name, err)
			}
		}
		all = append(all, proxy.Provider{Name: p.Name, Upstream: up, Keys: pool, Models: p.Models})
	}
	return all, nil
}

// Scrub takes every key out of a text.
func (m *Proxy) Scrub(text string) string {
	for _, pool := range append(m.made.pools(), m.pools...) {
		for _, key := range pool.Values() {
			text = strings.ReplaceAll(text, key.Reveal(), "[redacted]")
		}
	}
	return text
}

// keepKeys follows keys that are changed where they are kept.
func (m *Proxy) keepKeys(ctx context.Context) {
	for _, pool := range m.pools {
		m.work.Go(func() {
			pool.Refresh(ctx, func(err error) { m.service.Logger.WarnContext(ctx, "keys could not be read again", "error", err) })
		})
	}
}

// Close ends every request and settles it.
func (m *Proxy) Close() error {
	m.stop()
	m.work.Wait()
	err := m.Server.Close()
	if m.after != nil {
		err = errors.Join(err, m.after())
	}
	m.unscrub()
	return err
}

// AuthenticateByToken lets callers in that have a token of this installation. What the
// configuration says of the token's agent holds for them.
func (m *Proxy) AuthenticateByToken() proxy.Authenticate {
	desk, slots := m.service.Tokens(), m.service.Slots()
	verify := func(ctx context.Context, text string) (*grant.Terms, error) {
		terms, err := verifyToken(ctx, desk, slots, text)
		if err != nil {
			return nil, err
		}
		agent, err := m.agentOf(terms.Agent)
		if err != nil {
			return nil, err
		}
		if terms.BodyPolicy = agent.LLM.BodyPolicy; len(terms.Models) == 0 {
			terms.Models = AllowedModels(&agent.LLM)
		}
		return terms, nil
	}
	return proxy.AuthenticateByToken(verify, m.budgets)
}

// agentOf is a token's agent; one that is not configured is as the default one.
func (m *Proxy) agentOf(id string) (*config.Agent, error) {
	if agent, err := m.service.Config.Resolve(id); err == nil {
		return agent, nil
	}
	return m.service.Config.Resolve(m.service.Config.DefaultAgent())
}

// budgets are those of a caller's agent. A run or session that has no name has no
// budget of its own: that of its agent holds.
func (m *Proxy) budgets(t *grant.Terms) []usage.Limit {
	agent, err := m.agentOf(t.Agent)
	if err != nil {
		return []usage.Limit{{Scope: usage.ScopeAgent, Tokens: 1}} // it was there a moment ago: nothing is spent meanwhile
	}
	unnamed := map[usage.Scope]bool{usage.ScopeRun: t.Run == "", usage.ScopeSession: t.Session == ""}
	return slices.DeleteFunc(Limits(&m.Config, &agent.LLM), func(l usage.Limit) bool { return unnamed[l.Scope] })
}

// AllowedModels are an agent's models; a list that is not there means all.
func AllowedModels(c *config.AgentLLM) []string {
	if c.Models == nil {
		return []string{"*"}
	}
	return c.Models
}

// Reload reads every key again, from where the configuration says that it is now.
func (m *Proxy) Reload(ctx context.Context, s *provide.Settings, now *config.LLM) (err error) {
	for i, pool := range m.pools {
		at := slices.IndexFunc(now.Providers, func(p config.LLMProvider) bool { return p.Name == m.Config.Providers[i].Name })
		if at < 0 {
			err = errors.Join(err, pool.Reload(ctx))
			continue
		}
		sources, problem := keySources(s, &now.Providers[at])
		if problem == nil {
			problem = pool.Replace(ctx, sources...)
		}
		err = errors.Join(err, problem)
	}
	return err
}
