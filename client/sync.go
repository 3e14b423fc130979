package client

import (
	"context"
	"net/http"

	"github.com/atoll-run/atoll/api"
)

const sync = "/api/v1/sync"

// SyncTrees returns the overlays of a sandbox, with everything that changed.
func (c *Client) SyncTrees(ctx context.Context, q api.SyncQuery) (*api.SyncTrees, error) {
	return get[api.SyncTrees](ctx, c, sync, q)
}

// SyncRuns lists the runs on a directory whose changes wait.
func (c *Client) SyncRuns(ctx context.Context, q api.SyncQuery) (*api.SyncRuns, error) {
	return get[api.SyncRuns](ctx, c, sync+"/runs", q)
}

// SyncDiff returns what changed in one file.
func (c *Client) SyncDiff(ctx context.Context, q api.SyncQuery) (*api.SyncDiff, error) {
	return get[api.SyncDiff](ctx, c, sync+"/diff", q)
}

// SyncHistory lists what was applied.
func (c *Client) SyncHistory(ctx context.Context, q api.SyncQuery) (*api.SyncHistory, error) {
	return get[api.SyncHistory](ctx, c, sync+"/history", q)
}

// ApproveSync applies entries to the host, at the content that was shown.
func (c *Client) ApproveSync(ctx context.Context, r *api.SyncApproval) (*api.SyncApplied, error) {
	return do[api.SyncApplied](ctx, c, http.MethodPost, sync+"/approve", r)
}

// OverrideSync lets an entry pass that needs a person, and applies it.
func (c *Client) OverrideSync(ctx context.Context, r *api.SyncOverride) (*api.SyncApplied, error) {
	return do[api.SyncApplied](ctx, c, http.MethodPost, sync+"/override", r)
}

// RejectSync leaves changes out until they become others.
func (c *Client) RejectSync(ctx context.Context, r *api.SyncRejection) (*api.SyncDone, error) {
	return do[api.SyncDone](ctx, c, http.MethodPost, sync+"/reject", r)
}

// UndoSync puts back what a batch changed on the host.
func (c *Client) UndoSync(ctx context.Context, r *api.SyncUndo) (*api.SyncDone, error) {
	return do[api.SyncDone](ctx, c, http.MethodPost, sync+"/undo", r)
}

// ResetSync discards every change of the sandbox.
func (c *Client) ResetSync(ctx context.Context, r *api.SyncRequest) (*api.SyncDone, error) {
	return do[api.SyncDone](ctx, c, http.MethodPost, sync+"/reset", r)
}

// AcceptTornSync accepts changes that may be incomplete after the host's end.
func (c *Client) AcceptTornSync(ctx context.Context, r *api.SyncRequest) (*api.SyncDone, error) {
	return do[api.SyncDone](ctx, c, http.MethodPost, sync+"/accept-torn", r)
}

// SyncCommits lists commits made inside that the repository of the host has not.
func (c *Client) SyncCommits(ctx context.Context, q api.SyncQuery) (*api.SyncCommits, error) {
	return get[api.SyncCommits](ctx, c, sync+"/commits", q)
}

// TakeSync takes the agent's commits to a branch of the host's repository.
func (c *Client) TakeSync(ctx context.Context, r *api.SyncTake) (*api.SyncTaken, error) {
	return do[api.SyncTaken](ctx, c, http.MethodPost, sync+"/take", r)
}

// RefreshSync lets the sandbox see the host's files as they are now.
func (c *Client) RefreshSync(ctx context.Context, r *api.SyncRequest) (*api.SyncDone, error) {
	return do[api.SyncDone](ctx, c, http.MethodPost, sync+"/refresh", r)
}
