package rest

import (
	"context"
	"net/http"

	"github.com/atoll-run/atoll/api"
)

// Pools are the sandboxes that are ready before anybody asks for them.
type Pools interface {
	List(ctx context.Context) ([]api.Pool, error)
	// Resize sets how many wait for an agent.
	Resize(ctx context.Context, agent string, size int, by string) error
}

// withPools is a route about pools, which belong to the operator and to no account.
func withPools[B, A any](do func(c *call, body *B) (*A, error)) shape {
	return answers(func(c *call, _ *none, body *B) (*A, error) {
		if err := c.requireUnbound(); err != nil {
			return nil, err
		}
		if c.Pools == nil {
			return nil, &api.Problem{Status: http.StatusNotImplemented, Code: "not_supported", Detail: "this gateway has no pools"}
		}
		return do(c, body)
	})
}

func listPools(c *call, _ *none) (*api.Pools, error) {
	list, err := c.Pools.List(c.ctx())
	return &api.Pools{Pools: append([]api.Pool{}, list...)}, err
}

// resizePool answers with the pool as it is then; it is filled or emptied later.
func resizePool(c *call, body *api.ResizePool) (*api.Pool, error) {
	agent := c.path("agent")
	if err := c.Pools.Resize(c.ctx(), agent, body.Size, c.person()); err != nil {
		return nil, err
	}
	list, err := c.Pools.List(c.ctx())
	for i := range list {
		if list[i].Agent == agent {
			return &list[i], nil
		}
	}
	return &api.Pool{Agent: agent}, err
}
