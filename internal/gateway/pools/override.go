package pools

import (
	"context"
	"fmt"
	"strings"
)

// overrideFact begins the names of the facts that hold the sizes which operators set.
const overrideFact = "pool-size:"

// override is a size that an operator set in place of the configured one.
type override struct{ size, configured int }

// keepOverride stores a size that an operator set.
func (s *Service) keepOverride(ctx context.Context, agent string, o override) error {
	return s.In.Registry.SetFact(ctx, overrideFact+agent, fmt.Sprintf("%d of %d", o.size, o.configured))
}

// overrides returns the sizes that operators set, by agent.
func (s *Service) overrides(ctx context.Context) (map[string]override, error) {
	facts, err := s.In.Registry.Facts(ctx, overrideFact)
	all := map[string]override{}
	for name, text := range facts {
		var o override
		if _, err := fmt.Sscanf(text, "%d of %d", &o.size, &o.configured); err == nil {
			all[strings.TrimPrefix(name, overrideFact)] = o
		}
	}
	return all, err
}
