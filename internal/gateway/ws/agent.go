package ws

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/gateway/protocol"
	"github.com/atoll-run/atoll/internal/gateway/session"
)

func agentShape() shape {
	return join(
		shape{{name: "message", kind: word, need: true}, {name: "idempotencyKey", kind: word, need: true}, {name: "agentId", kind: word}, {name: "timeout", kind: integer}, {name: "outboundHeaders", kind: record}},
		optional(text, false, "to", "replyTo", "sessionId", "sessionKey", "thinking", "channel", "replyChannel", "accountId", "replyAccountId", "threadId", "groupId", "groupChannel", "groupSpace", "lane", "extraSystemPrompt", "label", "spawnedBy"),
		optional(flag, false, "deliver", "bestEffortDeliver"),
		optional(list, false, "attachments"), optional(record, false, "inputProvenance"),
		optional(text, true, "provider", "model", "voiceWakeTrigger", "promptMode", "bootstrapContextMode", "bootstrapContextRunKind", "acpTurnSource", "sessionEffects", "sourceReplyDeliveryMode"),
		optional(word, true, "expectedExistingSessionId", "cwd", "internalRuntimeHandoffId", "execApprovalFollowupExpectedSessionId"),
		optional(flag, true, "cleanupBundleMcpOnRunEnd", "modelRun", "internalExecutionIdentityRetry", "suppressPromptPersistence", "disableMessageTool", "swarmCollector", "forceRestartSafeTools", "forceCodeModeTools"),
		optional(list, true, "internalEvents"), optional(record, true, "swarmOutputSchema"),
		shape{{name: "internalExecutionIdentityRecoveryAttempt", kind: integer, min: 1, v4: true}},
	)
}

// agentParams are the parameters that have an effect here. Parameters that would
// change how a task is executed, and are not supported, are refused rather than
// ignored.
type agentParams struct {
	Message     string            `json:"message"`
	ID          string            `json:"idempotencyKey"`
	Agent       string            `json:"agentId"`
	Key         string            `json:"sessionKey"`
	SessionID   string            `json:"sessionId"`
	System      string            `json:"extraSystemPrompt"`
	Timeout     int64             `json:"timeout"`
	Thinking    string            `json:"thinking"`
	Headers     map[string]string `json:"outboundHeaders"`
	Deliver     bool              `json:"deliver"`
	Attachments []attachment      `json:"attachments"`
	Model       string            `json:"model"`
	Cwd         string            `json:"cwd"`
}

func (p *agentParams) unsupported() error {
	switch {
	case p.Deliver:
		return invalid("deliver is not supported by this gateway: it has no channels")
	case p.Model != "":
		return invalid("a model cannot be chosen for one task: use sessions.patch")
	case p.Cwd != "":
		return invalid("cwd is not supported by this gateway: agents work in their workspace")
	}
	return nil
}

// key returns the session key of a task.
func (p *agentParams) key() string {
	switch {
	case p.Key != "":
		return p.Key
	case p.SessionID != "" && p.Agent != "":
		return "agent:" + p.Agent + ":explicit:" + p.SessionID
	case p.SessionID != "":
		return "explicit:" + p.SessionID
	case p.Agent != "":
		return "agent:" + p.Agent + ":main"
	}
	return "main"
}

// agent submits a task to an agent. It replies twice: when the task is accepted,
// and when it is over.
func (c *call) agent() (any, error) {
	var p agentParams
	if err := c.bind(&p); err != nil {
		return nil, err
	}
	if err := errors.Join(p.unsupported(), c.checkAgent(p.Agent)); err != nil {
		return nil, firstOf(err)
	}
	uploads, err := decodeAttachments(p.Attachments)
	if err != nil {
		return nil, err
	}
	rec, existing, err := c.submit(session.Task{
		ID: p.ID, Key: p.key(), Message: p.Message, Uploads: uploads, System: p.System, Headers: p.Headers, Terms: session.Terms{Thinking: p.Thinking},
		Timeout: time.Duration(min(p.Timeout, maxSeconds)) * time.Second, Origin: c.conn.id,
	}, func(rec *session.Record) { c.respond(c.id, c.accepted(rec), nil) }, c.finalReply)
	switch {
	case err != nil:
		return nil, err
	case existing && rec.State.Over():
		return c.outcome(rec)
	case existing:
		c.background(func() { c.joinTask(rec) })
	}
	return noReply{}, nil
}

// joinTask replies for a task that was submitted before and is still under way.
func (c *call) joinTask(rec *session.Record) {
	c.conn.respond(c.id, c.accepted(rec), nil)
	done, err := c.server.Sessions.Wait(c.ctx, session.View{Account: rec.Account}, rec.ID)
	c.server.waitCaughtUp(c.ctx)
	c.finalReply(done, err)
}

// maxSeconds keeps a time limit within the range of time.Duration; sessions have a
// limit of their own.
const maxSeconds = 1 << 30

// firstOf returns the protocol error among joined errors.
func firstOf(err error) error {
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		return e
	}
	return err
}

func (c *call) accepted(rec *session.Record) fields {
	f := fields{"runId": rec.ID, "status": "accepted", "acceptedAt": rec.Accepted.UnixMilli()}
	if c.version >= protocol.V4 {
		f["sessionKey"], f["agentId"] = rec.Key, rec.Agent
	}
	return f
}

// checkAgent refuses an unknown agent.
func (c *call) checkAgent(agent string) error {
	if agent == "" {
		return nil
	}
	agents, err := c.server.Catalogue.Agents(c.ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(agents, func(a Agent) bool { return strings.EqualFold(a.ID, agent) }) {
		return invalid(fmt.Sprintf("invalid %s params: unknown agent id %q", c.method.name, clip(agent, 100)))
	}
	return nil
}

// submit submits a task within the token's quota, which it uses until the task is
// over, even if the connection ends. accepted is called before the task starts,
// because clients expect that reply first; then is called at its end. Neither is
// called for a task that existed before.
func (c *call) submit(t session.Task, accepted func(*session.Record), then func(*session.Record, error)) (*session.Record, bool, error) {
	c.params = nil // the call is kept until the task is over: free the message
	t.Account, t.Trace = c.caller.Account, c.trace
	quota := c.server.Access.Limiter.Quota(c.caller)
	t.Quota = session.Quota{Sandboxes: quota.Sandboxes, MicroUSD: quota.MicroUSD}
	end, err := c.server.Access.Limiter.Begin(c.ctx, c.caller)
	if err != nil {
		return nil, false, err
	}
	rec, existing, err := c.server.Sessions.SubmitAfter(c.ctx, c.view(), t, accepted)
	if err != nil || existing {
		end()
		return rec, existing, err
	}
	view := session.View{Account: rec.Account}
	c.server.pending.Add(1)
	c.server.work.Go(func() {
		defer c.server.pending.Add(-1)
		done, err := c.server.Sessions.Wait(c.server.ctx, view, rec.ID)
		end()
		c.server.waitCaughtUp(c.server.ctx)
		if then != nil {
			then(done, err)
		}
	})
	return rec, false, nil
}

// finalReply sends the second reply, when a task is over.
func (c *call) finalReply(rec *session.Record, err error) {
	switch {
	case c.ctx.Err() != nil: // the connection is gone
		return
	case err != nil:
		c.conn.respond(c.id, nil, c.explain(c.method.name, err))
		return
	}
	payload, err := c.outcome(rec)
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		c.conn.respond(c.id, nil, e)
		return
	}
	c.conn.respond(c.id, payload, nil)
}

// outcome returns the reply for a task that is over.
func (c *call) outcome(rec *session.Record) (any, error) {
	switch rec.State {
	case session.Failed:
		return nil, with(unavailable(rec.Problem), fields{"runId": rec.ID, "code": rec.Code})
	case session.Aborted:
		return fields{"runId": rec.ID, "status": "timeout", "summary": "aborted", "result": c.result(rec, true)}, nil
	}
	return fields{"runId": rec.ID, "status": "ok", "summary": "completed", "result": c.result(rec, false)}, nil
}

// result returns the answer and its metadata.
func (c *call) result(rec *session.Record, aborted bool) fields {
	provider, model, _ := strings.Cut(rec.Model, "/")
	usage := fields{"input": rec.Usage.Input, "output": rec.Usage.Output, "total": rec.Usage.Total()}
	last := fields{"input": rec.Usage.Input, "output": rec.Usage.Output, "cacheRead": rec.Usage.CacheRead, "cacheWrite": rec.Usage.CacheWrite, "total": rec.Usage.Total()}
	agent := fields{"sessionId": rec.Session, "provider": provider, "model": model, "usage": usage, "lastCallUsage": last, "promptTokens": rec.Usage.Input}
	meta := fields{"durationMs": duration(rec), "agentMeta": agent, "aborted": aborted}
	if c.version >= protocol.V4 {
		usage["cacheRead"], usage["cacheWrite"] = rec.Usage.CacheRead, rec.Usage.CacheWrite
		agent["sessionFile"], agent["costUsd"] = rec.Key, dollars(rec.MicroUSD)
		meta["finalPromptText"], meta["finalAssistantVisibleText"], meta["finalAssistantRawText"] = rec.Message, rec.Text, rec.Text
		meta["stopReason"], meta["livenessState"], meta["replayInvalid"] = "stop", "working", false
		meta["completion"] = fields{"stopReason": "stop", "finishReason": "stop"}
	}
	payloads := []fields{}
	if rec.Text != "" {
		payloads = append(payloads, fields{"text": rec.Text, "mediaUrl": nil})
	}
	return fields{"payloads": payloads, "meta": meta}
}

func duration(rec *session.Record) int64 {
	if rec.Started.IsZero() || rec.Ended.IsZero() {
		return 0
	}
	return rec.Ended.Sub(rec.Started).Milliseconds()
}

func dollars(micro int64) float64 { return float64(micro) / 1e6 }

func waitShape() shape {
	return shape{{name: "runId", kind: word, need: true}, {name: "timeoutMs", kind: integer}}
}

// Timeouts of agent.wait: the default and the maximum.
const (
	defaultWait     = 30 * time.Second
	maxWait         = 24 * time.Hour
	unknownTaskPoll = 250 * time.Millisecond // between lookups of a task that does not exist yet
)

// wait waits for the end of a task. The task may not exist yet: clients call this
// before they get the reply that it was accepted.
func (c *call) wait() (any, error) {
	p := struct {
		ID      string `json:"runId"`
		Timeout *int64 `json:"timeoutMs"`
	}{}
	if err := c.bind(&p); err != nil {
		return nil, err
	}
	limit := defaultWait
	if p.Timeout != nil {
		limit = min(time.Duration(min(*p.Timeout, maxWait.Milliseconds()))*time.Millisecond, maxWait)
	}
	ctx, cancel := context.WithTimeout(c.ctx, limit)
	defer cancel()
	rec, err := c.await(ctx, p.ID)
	switch {
	case ctx.Err() != nil && c.ctx.Err() == nil && (rec == nil || !rec.State.Over()):
		return fields{"runId": p.ID, "status": "timeout"}, nil
	case err != nil:
		return nil, err
	}
	return c.waitReply(rec), nil
}

func (c *call) await(ctx context.Context, id string) (*session.Record, error) {
	for {
		rec, err := c.server.Sessions.Wait(ctx, c.view(), id)
		if !errors.Is(err, session.ErrNotFound) {
			c.server.waitCaughtUp(ctx)
			return rec, err
		}
		select {
		case <-time.After(unknownTaskPoll):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (c *call) waitReply(rec *session.Record) fields {
	f := fields{"runId": rec.ID, "status": "ok"}
	if !rec.Started.IsZero() {
		f["startedAt"] = rec.Started.UnixMilli()
	}
	f["endedAt"] = rec.Ended.UnixMilli()
	switch {
	case rec.State == session.Failed:
		f["status"], f["error"] = "error", rec.Problem
	case rec.State == session.Aborted:
		f["status"], f["stopReason"] = "timeout", "rpc"
	case c.version >= protocol.V4:
		maps.Copy(f, ending(rec, rec.Started.UnixMilli(), rec.Ended.UnixMilli()))
	}
	return f
}
