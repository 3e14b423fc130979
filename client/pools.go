package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/atoll-run/atoll/api"
)

// Pools lists the pools of the gateway.
func (c *Client) Pools(ctx context.Context) (*api.Pools, error) {
	return get[api.Pools](ctx, c, "/api/v1/pools", nil)
}

// ResizePool sets how many sandboxes wait for an agent.
func (c *Client) ResizePool(ctx context.Context, agent string, r api.ResizePool) (*api.Pool, error) {
	return do[api.Pool](ctx, c, http.MethodPut, "/api/v1/pools/"+url.PathEscape(agent), &r)
}
