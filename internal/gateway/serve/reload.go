package serve

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/config/poolkeys"
	"github.com/atoll-run/atoll/internal/gateway"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// Reloaded is what became of a configuration that was read again.
type Reloaded struct {
	Restart []string // parts that changed and need a restart
}

// Reload takes over what can change while the gateway runs: tokens, keys, limits,
// prices, rules of egress, sizes of pools, certificates, origins and names. What is wrong with the configuration
// leaves everything as it was.
func (g *Gateway) Reload(ctx context.Context, s *provide.Settings) (*Reloaded, error) {
	next, err := s.Config.Gateway()
	if err != nil {
		return nil, err
	}
	llm, err := s.Config.LLM()
	if err != nil {
		return nil, err
	}
	if err := g.server.Reload(gateway.Reloadable{TLS: certificate(&next), Origins: next.Origins, Hosts: next.Hosts}); err != nil {
		return nil, err
	}
	if err := g.setFixed(ctx, s, &next); err != nil {
		return nil, err
	}
	g.access.Limiter.SetDefaults(quota(&next))
	g.parts.Egress.Refresh(ctx)
	if err := g.pools.SetSizes(ctx, poolkeys.Sizes(s.Config.Pools())); err != nil {
		return nil, err
	}
	err = errors.Join(g.worker.Models().Reload(ctx, s, &llm), g.parts.Models.ReplacePrices(ctx, &llm))
	if err != nil {
		g.logger.WarnContext(ctx, "keys or prices could not be read again", "error", err)
	}
	return &Reloaded{Restart: changed(g.parts, s, &g.config, &next)}, nil
}

// changed names the parts of a configuration that differ from the one in force and
// are not taken over.
func changed(p *Parts, s *provide.Settings, before, after *config.Gateway) (parts []string) {
	for _, part := range []struct {
		name string
		of   func(*config.Config) (any, error)
	}{
		{"agents and their images", func(c *config.Config) (any, error) { return resolveAll(c) }},
		{"llm", func(c *config.Config) (any, error) {
			l, err := c.LLM()
			l.Prices, l.Providers = nil, slices.Clone(l.Providers)
			for i := range l.Providers {
				l.Providers[i].Keys = nil
			}
			return l, err
		}},
		{"kubernetes", func(c *config.Config) (any, error) { k, _ := c.Kubernetes().Settings(); return k, nil }},
		{"runs and their variants", func(c *config.Config) (any, error) { return c.Runs() }},
		{"relay", func(c *config.Config) (any, error) { return c.Relay() }},
		{"models", func(c *config.Config) (any, error) { return c.Models(), nil }},
		{"templates of e2b", func(c *config.Config) (any, error) { return c.E2BTemplates(), nil }},
		{"gateway.links", func(c *config.Config) (any, error) { g, err := c.Gateway(); return g.TraceLink, err }},
		{"session", func(c *config.Config) (any, error) { return c.Session(), nil }},
	} {
		if differ(part.of, p.Config, s.Config) {
			parts = append(parts, part.name)
		}
	}
	if !reflect.DeepEqual(fixedPart(before), fixedPart(after)) {
		parts = append(parts, "gateway.port, bind, trustedNetwork or limits of connections")
	}
	return parts
}

func resolveAll(c *config.Config) (all []*config.Agent, err error) {
	for _, id := range c.Agents() {
		agent, err := c.Resolve(id)
		if err != nil {
			return nil, err
		}
		agent.Origins, agent.Sandbox.Egress = nil, config.Egress{} // egress follows the file
		all = append(all, agent)
	}
	return all, nil
}

// differ compares what two configurations say; a part that cannot be read differs.
func differ(of func(*config.Config) (any, error), a, b *config.Config) bool {
	first, err := of(a)
	second, err2 := of(b)
	if err != nil || err2 != nil {
		return fmt.Sprint(err) != fmt.Sprint(err2)
	}
	one, err := json.Marshal(first, json.Deterministic(true))
	two, err2 := json.Marshal(second, json.Deterministic(true))
	return err != nil || err2 != nil || string(one) != string(two)
}

// fixedPart is what the listeners were made from.
func fixedPart(c *config.Gateway) any {
	return []any{c.Address(), c.TrustedNetwork, c.Limits.Connections, c.Limits.PerAddress}
}
