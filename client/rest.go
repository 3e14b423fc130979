package client

import (
	"context"
	"net/http"
	"net/url"

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

// Verify checks the promises of a live sandbox.
func (c *Client) Verify(ctx context.Context, name string) (*api.Verifications, error) {
	return do[api.Verifications](ctx, c, http.MethodPost, pathWith("/api/v1/sandboxes/", name, "/verify"), nil)
}

// DriftDiffs returns how the behaviour files of a sandbox's private copy differ from the
// agent's.
func (c *Client) DriftDiffs(ctx context.Context, name string) (*api.DriftDiffs, error) {
	return get[api.DriftDiffs](ctx, c, pathWith("/api/v1/sandboxes/", name, "/drift"), nil)
}

// Explain returns the configuration and policy that apply to a session.
func (c *Client) Explain(ctx context.Context, q api.ExplainQuery) (*api.Explanation, error) {
	return get[api.Explanation](ctx, c, "/api/v1/policy/explain", q)
}

// Costs returns what was spent on models.
func (c *Client) Costs(ctx context.Context, q api.CostQuery) (*api.Costs, error) {
	return get[api.Costs](ctx, c, "/api/v1/costs", q)
}

// CostSeries returns what was spent on models over time.
func (c *Client) CostSeries(ctx context.Context, q api.SeriesQuery) (*api.CostSeries, error) {
	return get[api.CostSeries](ctx, c, "/api/v1/costs/series", q)
}

// VerifyAudit has the whole audit log read, and returns whether it is whole.
func (c *Client) VerifyAudit(ctx context.Context) (*api.AuditVerification, error) {
	return do[api.AuditVerification](ctx, c, http.MethodPost, "/api/v1/audit/verify", nil)
}

// Variants lists the kinds of agents.
func (c *Client) Variants(ctx context.Context) (*api.Variants, error) {
	return get[api.Variants](ctx, c, "/api/v1/variants", nil)
}

// Doctor examines the gateway's machine.
func (c *Client) Doctor(ctx context.Context) (*api.Doctor, error) {
	return get[api.Doctor](ctx, c, "/api/v1/doctor", nil)
}

// CreateToken makes a token; its text is in the answer this once.
func (c *Client) CreateToken(ctx context.Context, token *api.CreateToken) (*api.CreatedToken, error) {
	return ask[api.CreatedToken](ctx, c, &request{method: http.MethodPost, path: "/api/v1/tokens", body: token})
}

// RevokeToken ends a token.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	_, err := ask[api.Done](ctx, c, &request{method: http.MethodDelete, path: "/api/v1/tokens/" + url.PathEscape(id)})
	return err
}

// Devices lists the devices that showed a key of their own.
func (c *Client) Devices(ctx context.Context) (*api.Devices, error) {
	return get[api.Devices](ctx, c, "/api/v1/devices", nil)
}

// PairDevice pairs a device that waits for it.
func (c *Client) PairDevice(ctx context.Context, id string) error {
	_, err := ask[api.Done](ctx, c, &request{method: http.MethodPost, path: "/api/v1/devices/" + url.PathEscape(id) + "/pair"})
	return err
}

// RemoveDevice ends a device.
func (c *Client) RemoveDevice(ctx context.Context, id string) error {
	_, err := ask[api.Done](ctx, c, &request{method: http.MethodDelete, path: "/api/v1/devices/" + url.PathEscape(id)})
	return err
}

// Tokens lists the tokens of the gateway's callers.
func (c *Client) Tokens(ctx context.Context) (*api.Tokens, error) {
	return get[api.Tokens](ctx, c, "/api/v1/tokens", nil)
}

// Models lists the models that agents can ask.
func (c *Client) Models(ctx context.Context) (*api.Models, error) {
	return get[api.Models](ctx, c, "/api/v1/models", nil)
}

// Audit returns the last records of the audit log.
func (c *Client) Audit(ctx context.Context, q api.AuditQuery) (*api.Audit, error) {
	return get[api.Audit](ctx, c, "/api/v1/audit", q)
}

// Health returns whether the gateway's process answers.
func (c *Client) Health(ctx context.Context) (*api.Health, error) {
	return get[api.Health](ctx, c, "/health", nil)
}

// Ready returns whether the gateway can do its work; if not, the problem's detail
// says why.
func (c *Client) Ready(ctx context.Context) (*api.Ready, error) {
	return get[api.Ready](ctx, c, "/ready", nil)
}

const sessions = "/api/v1/sessions"

// Sessions lists a page of sessions.
func (c *Client) Sessions(ctx context.Context, q api.SessionQuery) (*api.Sessions, error) {
	return get[api.Sessions](ctx, c, sessions, q)
}

// Session returns a session.
func (c *Client) Session(ctx context.Context, key string) (*api.Session, error) {
	return get[api.Session](ctx, c, pathWith(sessions+"/", key, ""), nil)
}

// PatchSession changes the settings of a session.
func (c *Client) PatchSession(ctx context.Context, key string, p *api.SessionPatch) (*api.Session, error) {
	return do[api.Session](ctx, c, http.MethodPatch, pathWith(sessions+"/", key, ""), p)
}

// ResetSession starts a new transcript of a session.
func (c *Client) ResetSession(ctx context.Context, key string) (*api.Session, error) {
	return do[api.Session](ctx, c, http.MethodPost, pathWith(sessions+"/", key, "/reset"), nil)
}

// DeleteSession removes a session and its transcript.
func (c *Client) DeleteSession(ctx context.Context, key string) (*api.Session, error) {
	return do[api.Session](ctx, c, http.MethodDelete, pathWith(sessions+"/", key, ""), nil)
}

// AbortSession aborts the tasks of a session.
func (c *Client) AbortSession(ctx context.Context, key string) (*api.Aborted, error) {
	return do[api.Aborted](ctx, c, http.MethodPost, pathWith(sessions+"/", key, "/abort"), nil)
}

// History returns the transcript of a session.
func (c *Client) History(ctx context.Context, key string, most int) (*api.History, error) {
	return get[api.History](ctx, c, pathWith(sessions+"/", key, "/history"), api.HistoryQuery{Limit: most})
}

// Send submits a message to a session and waits for the answer. With an idempotency
// key, repeating the call does not repeat the task.
func (c *Client) Send(ctx context.Context, session string, message *api.SendRequest, key string) (*api.Task, error) {
	return c.say(ctx, session, message, map[string]string{"Idempotency-Key": key})
}

// Submit submits a message to a session without waiting; TaskEvents follows the
// task.
func (c *Client) Submit(ctx context.Context, session string, message *api.SendRequest, key string) (*api.Task, error) {
	return c.say(ctx, session, message, map[string]string{"Idempotency-Key": key, "Prefer": "respond-async"})
}

func (c *Client) say(ctx context.Context, session string, message *api.SendRequest, header map[string]string) (*api.Task, error) {
	return ask[api.Task](ctx, c, &request{method: http.MethodPost, path: pathWith(sessions+"/", session, "/messages"), body: message, header: header})
}

const tasks = "/api/v1/tasks/"

// Task returns a task.
func (c *Client) Task(ctx context.Context, id string) (*api.Task, error) {
	return get[api.Task](ctx, c, pathWith(tasks, id, ""), nil)
}

// CancelTask cancels one task, and returns it when it has ended.
func (c *Client) CancelTask(ctx context.Context, id string) (*api.Task, error) {
	return do[api.Task](ctx, c, http.MethodDelete, pathWith(tasks, id, ""), nil)
}

// Me returns who the caller is.
func (c *Client) Me(ctx context.Context) (*api.Me, error) {
	return get[api.Me](ctx, c, "/api/v1/me", nil)
}

// CreateLogInCode returns a code that logs a web browser in, once. It works on the
// owner's socket alone.
func (c *Client) CreateLogInCode(ctx context.Context) (*api.LogInCode, error) {
	return do[api.LogInCode](ctx, c, http.MethodPost, "/api/v1/ui/codes", nil)
}
