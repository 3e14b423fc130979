package app

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
	"github.com/atoll-run/atoll/internal/secret"
)

// Models is the proxy of this process: keys, budgets, ledger and audit log in
// front of the providers that are configured.
type Models struct {
	*proxy.Server
	app    *App
	config config.LLM
	pools  []*secret.Pool
	made   runKeys
	stop   context.CancelFunc
	work   sync.WaitGroup
	after  func() error // what to end last; may be nil
}

// pricePatience is how long providers have to tell their prices.
const pricePatience = 5 * time.Second

// Models opens the proxy. Close it before the App.
func (a *App) Models(ctx context.Context) (*Models, error) {
	cfg, err := a.Config.LLM()
	if err != nil {
		return nil, err
	}
	return a.openModels(ctx, cfg)
}

func (a *App) openModels(ctx context.Context, cfg config.LLM) (*Models, error) {
	m := &Models{app: a, config: cfg}
	ledger, err := a.Ledger(ctx)
	if err != nil {
		return nil, err
	}
	providers, err := m.providers(ctx)
	if err != nil {
		return nil, err
	}
	log, err := a.AuditLog(m.scrub)
	if err != nil {
		return nil, err
	}
	if !m.scripted() {
		m.learnPrices(ctx)
	}
	m.Server, err = proxy.New(proxy.Options{
		Providers: providers, Ledger: ledger, Audit: log, Logger: a.Logger, MaxBody: cfg.Limits.BodyBytes,
		MaxPerCaller: cfg.Limits.Requests, MaxN: int64(cfg.Limits.Choices), MaxOutput: int64(cfg.Limits.MaxOutputTokens),
		Installation: a.ID, Allowed: ask.NewAllowed(cfg.AllowMembers, cfg.AllowTools),
		Broken: func(err error) bool { return errors.Is(err, machine.ErrLost) },
	})
	if err != nil {
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
func (m *Models) learnPrices(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pricePatience)
	defer cancel()
	if err := m.app.LearnPrices(ctx); err != nil {
		m.app.Logger.WarnContext(ctx, "prices could not be asked for", "error", err)
	}
}

func (m *Models) providers(ctx context.Context) (all []proxy.Provider, err error) {
	milliseconds := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	times := &m.config.Timeouts
	for i := range m.config.Providers {
		p := &m.config.Providers[i]
		pool, err := KeyPool(ctx, m.app.Settings, p)
		if err != nil {
			return nil, err
		}
		m.pools = append(m.pools, pool)
		up := proxy.Upstream{
			URL: p.URL, ConnectTimeout: milliseconds(times.ConnectMs), HeaderTimeout: milliseconds(times.HeaderMs),
			IdleTimeout: milliseconds(times.IdleMs), TotalTimeout: milliseconds(times.TotalMs),
			Stranger: p.Kind != config.DefaultLLMProvider,
		}
		if p.Kind == "anthropic" {
			up.Header = "x-api-key"
		}
		if p.CAFile != "" {
			if up.TLS, err = outbound.TrustOnly(p.CAFile); err != nil {
				return nil, fmt.Errorf("provider %s: %w", p.Name, err)
			}
		}
		all = append(all, proxy.Provider{Name: p.Name, Upstream: up, Keys: pool, Models: p.Models})
	}
	return all, nil
}

// scrub takes every key out of a text.
func (m *Models) scrub(text string) string {
	for _, pool := range append(m.made.pools(), m.pools...) {
		for _, key := range pool.Values() {
			text = strings.ReplaceAll(text, key.Reveal(), "[redacted]")
		}
	}
	return text
}

// keepKeys follows keys that are changed where they are kept.
func (m *Models) keepKeys(ctx context.Context) {
	for _, pool := range m.pools {
		m.work.Go(func() {
			pool.Keep(ctx, func(err error) { m.app.Logger.WarnContext(ctx, "keys could not be read again", "error", err) })
		})
	}
}

// Close ends every request and settles it.
func (m *Models) Close() error {
	m.stop()
	m.work.Wait()
	err := m.Server.Close()
	if m.after != nil {
		err = errors.Join(err, m.after())
	}
	return err
}

// TokenDoor lets callers in that have a token of this installation. What the
// configuration says of the token's agent holds for them.
func (m *Models) TokenDoor() proxy.Door {
	desk, slots := m.app.Tokens(), m.app.Slots()
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
			terms.Models = allowedModels(&agent.LLM)
		}
		return terms, nil
	}
	return proxy.TokenDoor(verify, m.budgets)
}

// agentOf is a token's agent; one that is not configured is as the default one.
func (m *Models) agentOf(id string) (*config.Agent, error) {
	if agent, err := m.app.Config.Resolve(id); err == nil {
		return agent, nil
	}
	return m.app.Config.Resolve(m.app.Config.DefaultAgent())
}

// budgets are those of a caller's agent. A run or session that has no name has no
// budget of its own: that of its agent holds.
func (m *Models) budgets(t *grant.Terms) []usage.Limit {
	agent, err := m.agentOf(t.Agent)
	if err != nil {
		return []usage.Limit{{Scope: usage.ScopeAgent, Tokens: 1}} // it was there a moment ago: nothing is spent meanwhile
	}
	unnamed := map[usage.Scope]bool{usage.ScopeRun: t.Run == "", usage.ScopeSession: t.Session == ""}
	return slices.DeleteFunc(Limits(&m.config, &agent.LLM), func(l usage.Limit) bool { return unnamed[l.Scope] })
}

// allowedModels are an agent's models; a list that is not there means all.
func allowedModels(c *config.AgentLLM) []string {
	if c.Models == nil {
		return []string{"*"}
	}
	return c.Models
}
