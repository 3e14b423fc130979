package client

import (
	"context"
	"net/http"

	"github.com/atoll-run/atoll/api"
)

const runs = "/api/v1/ai/runs"

// Agents lists agents that runs can be given to.
func (c *Client) Agents(ctx context.Context) (*api.Agents, error) {
	return get[api.Agents](ctx, c, "/api/v1/ai/agents", nil)
}

// Start starts a run without waiting for it. With an idempotency key, repeating the
// call does not start another.
func (c *Client) Start(ctx context.Context, task *api.RunRequest, key string) (*api.Run, error) {
	return ask[api.Run](ctx, c, &request{method: http.MethodPost, path: runs, body: task, header: map[string]string{"Prefer": "respond-async", "Idempotency-Key": key}})
}

// Runs lists a page of runs.
func (c *Client) Runs(ctx context.Context, q api.RunQuery) (*api.Runs, error) {
	return get[api.Runs](ctx, c, runs, q)
}

// Run returns a run.
func (c *Client) Run(ctx context.Context, id string) (*api.Run, error) {
	return get[api.Run](ctx, c, pathWith(runs+"/", id, ""), nil)
}

// Cancel cancels a run, and returns it when it has ended.
func (c *Client) Cancel(ctx context.Context, id string) (*api.Run, error) {
	return do[api.Run](ctx, c, http.MethodDelete, pathWith(runs+"/", id, ""), nil)
}

// Cost returns what a run has spent.
func (c *Client) Cost(ctx context.Context, id string) (*api.RunCost, error) {
	return get[api.RunCost](ctx, c, pathWith(runs+"/", id, "/cost"), nil)
}

// RunCalls lists the calls of models of a run.
func (c *Client) RunCalls(ctx context.Context, id string) (*api.ModelCalls, error) {
	return get[api.ModelCalls](ctx, c, pathWith(runs+"/", id, "/calls"), nil)
}

// EventPage lists the events of a run after a number, without waiting.
func (c *Client) EventPage(ctx context.Context, id string, after int64) (*api.Events, error) {
	return get[api.Events](ctx, c, pathWith(runs+"/", id, "/events"), api.EventQuery{After: after})
}
