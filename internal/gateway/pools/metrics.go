package pools

import "github.com/atoll-run/atoll/internal/metrics"

// Counters are what operators see of pools. Their labels are agents of the configuration
// and reasons out of a fixed set.
type Counters struct {
	registry *metrics.Registry
	failures *metrics.Counters
}

// NewCounters returns the counters of a program.
func NewCounters(r *metrics.Registry) *Counters {
	return &Counters{r, r.Counter("atoll_pool_refill_failures_total", "Sandboxes that could not be made for a pool, by agent and reason (disk_full, no_image, unsupported, denied, other).", "agent", "reason")}
}

// show shows what a service knows of its pools.
func (c *Counters) show(s *Service) {
	labels := []string{"agent"}
	each := func(value func(*pool) float64) func(func(float64, ...string)) {
		return func(set func(float64, ...string)) {
			s.mu.Lock()
			defer s.mu.Unlock()
			for agent, p := range s.pools {
				set(value(p), agent)
			}
		}
	}
	c.registry.Gauges("atoll_pool_ready", "Sandboxes that wait in the pool of an agent.", labels, each(func(p *pool) float64 { return float64(p.ready) }))
	c.registry.Gauges("atoll_pool_size", "Sandboxes that are to wait in the pool of an agent.", labels, each(func(p *pool) float64 { return float64(p.size) }))
	c.registry.Totals("atoll_pool_claims_total", "Sandboxes that this gateway took out of the pool of an agent.", labels, each(func(p *pool) float64 { return float64(p.claimed) }))
	c.registry.Totals("atoll_pool_misses_total", "New sandboxes of an agent with a pool for which there was none in it.", labels, each(func(p *pool) float64 { return float64(p.missed) }))
}
