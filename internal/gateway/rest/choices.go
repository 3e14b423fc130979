package rest

import (
	"context"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/publicerr"
)

// Choices are what a caller of runs and sessions can choose from.
type Choices interface {
	// Variants lists the kinds of agents, and says which of them cannot work.
	Variants(ctx context.Context) ([]api.Variant, error)
	// Models lists the models that have names.
	Models(ctx context.Context) ([]api.Model, error)
}

// variants lists the kinds of agents; paths of the host are for unbound callers.
func (s *Server) variants(c *call, _, _ *none) (*api.Variants, error) {
	answer := &api.Variants{Variants: []api.Variant{}}
	if s.Choices == nil {
		return answer, nil
	}
	list, err := s.Choices.Variants(c.ctx())
	if err != nil {
		return nil, err
	}
	for i := range list {
		if c.isBound() {
			list[i].Unavailable = publicerr.Text(list[i].Unavailable)
		}
		answer.Variants = append(answer.Variants, list[i])
	}
	return answer, nil
}

// models lists the models.
func (s *Server) models(c *call, _, _ *none) (*api.Models, error) {
	answer := &api.Models{Models: []api.Model{}}
	if s.Choices == nil {
		return answer, nil
	}
	list, err := s.Choices.Models(c.ctx())
	if err != nil {
		return nil, err
	}
	answer.Models = append(answer.Models, list...)
	return answer, nil
}
