package rest

import (
	"context"

	"github.com/atoll-run/atoll/api"
)

// Catalogue lists agents that runs can be given to.
type Catalogue interface {
	Agents(ctx context.Context) ([]api.Agent, error)
}

// agents merges the catalogues. Of two agents with the same id, the first is the
// one that a run gets.
func (s *Server) agents(c *call, _, _ *none) (*api.Agents, error) {
	list, seen := []api.Agent{}, map[string]bool{}
	for _, catalogue := range s.Agents {
		some, err := catalogue.Agents(c.ctx())
		if err != nil {
			return nil, err
		}
		for _, a := range some {
			if !seen[a.GraphID] {
				list, seen[a.GraphID] = append(list, a), true
			}
		}
	}
	return &api.Agents{Agents: list}, nil
}
