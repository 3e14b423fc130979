package client

import (
	"context"
	"net/http"

	"github.com/atoll-run/atoll/api"
)

// Sandboxes lists sandboxes.
func (c *Client) Sandboxes(ctx context.Context, q api.SandboxQuery) (*api.Sandboxes, error) {
	return get[api.Sandboxes](ctx, c, "/api/v1/sandboxes", q)
}

// Recreate removes a sandbox, so that the next use makes it anew.
func (c *Client) Recreate(ctx context.Context, name string, discard bool) (*api.Recreated, error) {
	return do[api.Recreated](ctx, c, http.MethodPost, pathWith("/api/v1/sandboxes/", name, "/recreate"), &api.RecreateRequest{Discard: discard})
}

// Prune removes sandboxes that are idle or old.
func (c *Client) Prune(ctx context.Context, workspaces bool) (*api.Pruned, error) {
	return do[api.Pruned](ctx, c, http.MethodPost, "/api/v1/sandboxes/prune", &api.PruneRequest{Workspaces: workspaces})
}

// Verify finds out what a live sandbox keeps of its promises.
func (c *Client) Verify(ctx context.Context, name string) (*api.Verifications, error) {
	return do[api.Verifications](ctx, c, http.MethodPost, pathWith("/api/v1/sandboxes/", name, "/verify"), nil)
}

// Explain says what applies to a session.
func (c *Client) Explain(ctx context.Context, q api.ExplainQuery) (*api.Explanation, error) {
	return get[api.Explanation](ctx, c, "/api/v1/policy/explain", q)
}

// Costs is what was spent on models.
func (c *Client) Costs(ctx context.Context, q api.CostQuery) (*api.Costs, error) {
	return get[api.Costs](ctx, c, "/api/v1/costs", q)
}

// Audit is the end of the audit log.
func (c *Client) Audit(ctx context.Context, q api.AuditQuery) (*api.Audit, error) {
	return get[api.Audit](ctx, c, "/api/v1/audit", q)
}

// Health asks whether the gateway lives.
func (c *Client) Health(ctx context.Context) (*api.Health, error) {
	return get[api.Health](ctx, c, "/health", nil)
}

// Ready asks whether the gateway can do its work; why it cannot is the problem's detail.
func (c *Client) Ready(ctx context.Context) (*api.Ready, error) {
	return get[api.Ready](ctx, c, "/ready", nil)
}

const sessions = "/api/v1/sessions"

// Sessions lists a page of sessions.
func (c *Client) Sessions(ctx context.Context, q api.SessionQuery) (*api.Sessions, error) {
	return get[api.Sessions](ctx, c, sessions, q)
}

// Session shows a session.
func (c *Client) Session(ctx context.Context, key string) (*api.Session, error) {
	return get[api.Session](ctx, c, pathWith(sessions+"/", key, ""), nil)
}

// PatchSession changes what is set for a session.
func (c *Client) PatchSession(ctx context.Context, key string, p *api.SessionPatch) (*api.Session, error) {
	return do[api.Session](ctx, c, http.MethodPatch, pathWith(sessions+"/", key, ""), p)
}

// ResetSession begins a session anew.
func (c *Client) ResetSession(ctx context.Context, key string) (*api.Session, error) {
	return do[api.Session](ctx, c, http.MethodPost, pathWith(sessions+"/", key, "/reset"), nil)
}

// DeleteSession removes a session and its transcript.
func (c *Client) DeleteSession(ctx context.Context, key string) (*api.Session, error) {
	return do[api.Session](ctx, c, http.MethodDelete, pathWith(sessions+"/", key, ""), nil)
}

// AbortSession ends the tasks of a session.
func (c *Client) AbortSession(ctx context.Context, key string) (*api.Aborted, error) {
	return do[api.Aborted](ctx, c, http.MethodPost, pathWith(sessions+"/", key, "/abort"), nil)
}

// History is what was said in a session.
func (c *Client) History(ctx context.Context, key string, most int) (*api.History, error) {
	return get[api.History](ctx, c, pathWith(sessions+"/", key, "/history"), api.HistoryQuery{Limit: most})
}

// Send says something in a session and waits for the answer. The key, if there is
// one, makes asking twice asking once.
func (c *Client) Send(ctx context.Context, session string, message *api.SendRequest, key string) (*api.Task, error) {
	return c.say(ctx, session, message, map[string]string{"Idempotency-Key": key})
}

// Submit says something in a session and does not wait; TaskEvents does.
func (c *Client) Submit(ctx context.Context, session string, message *api.SendRequest, key string) (*api.Task, error) {
	return c.say(ctx, session, message, map[string]string{"Idempotency-Key": key, "Prefer": "respond-async"})
}

func (c *Client) say(ctx context.Context, session string, message *api.SendRequest, header map[string]string) (*api.Task, error) {
	return ask[api.Task](ctx, c, &request{method: http.MethodPost, path: pathWith(sessions+"/", session, "/messages"), body: message, header: header})
}

const tasks = "/api/v1/tasks/"

// Task shows what became of a message.
func (c *Client) Task(ctx context.Context, id string) (*api.Task, error) {
	return get[api.Task](ctx, c, pathWith(tasks, id, ""), nil)
}

// CancelTask ends one task, and returns it when it has ended.
func (c *Client) CancelTask(ctx context.Context, id string) (*api.Task, error) {
	return do[api.Task](ctx, c, http.MethodDelete, pathWith(tasks, id, ""), nil)
}
