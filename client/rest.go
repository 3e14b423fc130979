package client

import (
	"context"
	"net/http"

	"github.com/atoll-run/atoll/api"
)

// Sandboxes lists sandboxes.
func (c *Client) Sandboxes(ctx context.Context, q api.SandboxQuery) (*api.Sandboxes, error) {
	return ask[api.Sandboxes](ctx, c, &request{method: http.MethodGet, path: "/api/v1/sandboxes", query: q})
}

// Recreate removes a sandbox, so that the next use makes it anew.
func (c *Client) Recreate(ctx context.Context, name string, discard bool) (*api.Recreated, error) {
	return ask[api.Recreated](ctx, c, &request{method: http.MethodPost, path: at("/api/v1/sandboxes/", name, "/recreate"), body: &api.RecreateRequest{Discard: discard}})
}

// Prune removes sandboxes that are idle or old.
func (c *Client) Prune(ctx context.Context, workspaces bool) (*api.Pruned, error) {
	return ask[api.Pruned](ctx, c, &request{method: http.MethodPost, path: "/api/v1/sandboxes/prune", body: &api.PruneRequest{Workspaces: workspaces}})
}

// Verify finds out what a live sandbox keeps of its promises.
func (c *Client) Verify(ctx context.Context, name string) (*api.Verifications, error) {
	return ask[api.Verifications](ctx, c, &request{method: http.MethodPost, path: at("/api/v1/sandboxes/", name, "/verify")})
}

// Explain says what applies to a session.
func (c *Client) Explain(ctx context.Context, q api.ExplainQuery) (*api.Explanation, error) {
	return ask[api.Explanation](ctx, c, &request{method: http.MethodGet, path: "/api/v1/policy/explain", query: q})
}

// Costs is what was spent on models.
func (c *Client) Costs(ctx context.Context, q api.CostQuery) (*api.Costs, error) {
	return ask[api.Costs](ctx, c, &request{method: http.MethodGet, path: "/api/v1/costs", query: q})
}

// Audit is the end of the audit log.
func (c *Client) Audit(ctx context.Context, q api.AuditQuery) (*api.Audit, error) {
	return ask[api.Audit](ctx, c, &request{method: http.MethodGet, path: "/api/v1/audit", query: q})
}

// Health asks whether the gateway lives.
func (c *Client) Health(ctx context.Context) (*api.Health, error) {
	return ask[api.Health](ctx, c, &request{method: http.MethodGet, path: "/health"})
}

const sessions = "/api/v1/sessions"

// Sessions lists a page of sessions.
func (c *Client) Sessions(ctx context.Context, q api.SessionQuery) (*api.Sessions, error) {
	return ask[api.Sessions](ctx, c, &request{method: http.MethodGet, path: sessions, query: q})
}

// Session shows a session.
func (c *Client) Session(ctx context.Context, key string) (*api.Session, error) {
	return ask[api.Session](ctx, c, &request{method: http.MethodGet, path: at(sessions+"/", key, "")})
}

// PatchSession changes what is set for a session.
func (c *Client) PatchSession(ctx context.Context, key string, p *api.SessionPatch) (*api.Session, error) {
	return ask[api.Session](ctx, c, &request{method: http.MethodPatch, path: at(sessions+"/", key, ""), body: p})
}

// ResetSession begins a session anew.
func (c *Client) ResetSession(ctx context.Context, key string) (*api.Session, error) {
	return ask[api.Session](ctx, c, &request{method: http.MethodPost, path: at(sessions+"/", key, "/reset")})
}

// DeleteSession removes a session and its transcript.
func (c *Client) DeleteSession(ctx context.Context, key string) (*api.Session, error) {
	return ask[api.Session](ctx, c, &request{method: http.MethodDelete, path: at(sessions+"/", key, "")})
}

// AbortSession ends the tasks of a session.
func (c *Client) AbortSession(ctx context.Context, key string) (*api.Aborted, error) {
	return ask[api.Aborted](ctx, c, &request{method: http.MethodPost, path: at(sessions+"/", key, "/abort")})
}

// History is what was said in a session.
func (c *Client) History(ctx context.Context, key string, most int) (*api.History, error) {
	return ask[api.History](ctx, c, &request{method: http.MethodGet, path: at(sessions+"/", key, "/history"), query: api.HistoryQuery{Limit: most}})
}

// Send says something in a session and waits for the answer. The key, if there is
// one, makes asking twice asking once.
func (c *Client) Send(ctx context.Context, session string, message *api.SendRequest, key string) (*api.Task, error) {
	return ask[api.Task](ctx, c, &request{method: http.MethodPost, path: at(sessions+"/", session, "/messages"), body: message, header: map[string]string{"Idempotency-Key": key}})
}
