package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/atoll-run/atoll/api"
)

// Budgets shows what may be spent on models, and what was.
func (c *Client) Budgets(ctx context.Context) (*api.Budgets, error) {
	return get[api.Budgets](ctx, c, "/api/v1/budgets", nil)
}

// Config shows the settings of an agent, and where each came from.
func (c *Client) Config(ctx context.Context, q api.ConfigQuery) (*api.Config, error) {
	return get[api.Config](ctx, c, "/api/v1/config", &q)
}

// Images lists the images that need no engine.
func (c *Client) Images(ctx context.Context) (*api.Images, error) {
	return get[api.Images](ctx, c, "/api/v1/images", nil)
}

// Relays shows what became of the commits of runs.
func (c *Client) Relays(ctx context.Context, q api.RelayQuery) (*api.RelayRecords, error) {
	return get[api.RelayRecords](ctx, c, "/api/v1/relay", &q)
}

// Relay shows what became of the commits of a run.
func (c *Client) Relay(ctx context.Context, run string) (*api.RelayRecord, error) {
	return get[api.RelayRecord](ctx, c, "/api/v1/relay/"+url.PathEscape(run), nil)
}

// RelayPatch shows what the commits of a run change.
func (c *Client) RelayPatch(ctx context.Context, run string) (*api.RelayPatch, error) {
	return get[api.RelayPatch](ctx, c, "/api/v1/relay/"+url.PathEscape(run)+"/patch", nil)
}

// PushRelay pushes commits that were kept.
func (c *Client) PushRelay(ctx context.Context, run string, approve bool) (*api.RelayRecord, error) {
	return do[api.RelayRecord](ctx, c, http.MethodPost, "/api/v1/relay/"+url.PathEscape(run)+"/push", &api.RelayPush{Approve: approve})
}

// RetryRelays goes on with pushes that were interrupted.
func (c *Client) RetryRelays(ctx context.Context) (*api.RelayRecords, error) {
	return do[api.RelayRecords](ctx, c, http.MethodPost, "/api/v1/relay/retry", nil)
}
