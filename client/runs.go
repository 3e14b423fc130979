package client

import (
	"context"
	"net/http"

	"github.com/atoll-run/atoll/api"
)

const runs = "/api/v1/ai/runs"

// Agents lists what runs can be given to.
func (c *Client) Agents(ctx context.Context) (*api.Agents, error) {
	return get[api.Agents](ctx, c, "/api/v1/ai/agents", nil)
}

// Start has a task accepted, and does not wait for it. The key, if there is one,
// makes asking twice asking once.
func (c *Client) Start(ctx context.Context, task *api.RunRequest, key string) (*api.Run, error) {
	return ask[api.Run](ctx, c, &request{method: http.MethodPost, path: runs, body: task, header: map[string]string{"Prefer": "respond-async", "Idempotency-Key": key}})
}

// Runs lists a page of runs.
func (c *Client) Runs(ctx context.Context, q api.RunQuery) (*api.Runs, error) {
	return get[api.Runs](ctx, c, runs, q)
}

// Run shows a run.
func (c *Client) Run(ctx context.Context, id string) (*api.Run, error) {
	return get[api.Run](ctx, c, pathWith(runs+"/", id, ""), nil)
}

// Cancel ends a run, and returns it when it has ended.
func (c *Client) Cancel(ctx context.Context, id string) (*api.Run, error) {
	return do[api.Run](ctx, c, http.MethodDelete, pathWith(runs+"/", id, ""), nil)
}

// Cost is what a run has spent.
func (c *Client) Cost(ctx context.Context, id string) (*api.RunCost, error) {
	return get[api.RunCost](ctx, c, pathWith(runs+"/", id, "/cost"), nil)
}

// EventPage lists what happened in a run after an event, and does not wait.
func (c *Client) EventPage(ctx context.Context, id string, after int64) (*api.Events, error) {
	return get[api.Events](ctx, c, pathWith(runs+"/", id, "/events"), api.EventQuery{After: after})
}
