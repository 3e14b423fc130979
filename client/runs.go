package client

import (
	"context"
	"net/http"

	"github.com/atoll-run/atoll/api"
)

const runs = "/api/v1/ai/runs"

// Agents lists what runs can be given to.
func (c *Client) Agents(ctx context.Context) (*api.Agents, error) {
	return ask[api.Agents](ctx, c, &request{method: http.MethodGet, path: "/api/v1/ai/agents"})
}

// Start has a task accepted, and does not wait for it. The key, if there is one,
// makes asking twice asking once.
func (c *Client) Start(ctx context.Context, task *api.RunRequest, key string) (*api.Run, error) {
	return ask[api.Run](ctx, c, &request{method: http.MethodPost, path: runs, body: task, header: map[string]string{"Prefer": "respond-async", "Idempotency-Key": key}})
}

// Runs lists a page of runs.
func (c *Client) Runs(ctx context.Context, q api.RunQuery) (*api.Runs, error) {
	return ask[api.Runs](ctx, c, &request{method: http.MethodGet, path: runs, query: q})
}

// Run shows a run.
func (c *Client) Run(ctx context.Context, id string) (*api.Run, error) {
	return ask[api.Run](ctx, c, &request{method: http.MethodGet, path: at(runs+"/", id, "")})
}

// Cancel ends a run, and returns it when it has ended.
func (c *Client) Cancel(ctx context.Context, id string) (*api.Run, error) {
	return ask[api.Run](ctx, c, &request{method: http.MethodDelete, path: at(runs+"/", id, "")})
}

// Cost is what a run has spent.
func (c *Client) Cost(ctx context.Context, id string) (*api.RunCost, error) {
	return ask[api.RunCost](ctx, c, &request{method: http.MethodGet, path: at(runs+"/", id, "/cost")})
}

// EventPage lists what happened in a run after an event, and does not wait.
func (c *Client) EventPage(ctx context.Context, id string, after int64) (*api.Events, error) {
	return ask[api.Events](ctx, c, &request{method: http.MethodGet, path: at(runs+"/", id, "/events"), query: api.EventQuery{After: after}})
}
