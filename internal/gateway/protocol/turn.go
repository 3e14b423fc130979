package protocol

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// AgentParams are the parameters of the method agent.
type AgentParams struct {
	Message        string            `json:"message"`
	AgentID        string            `json:"agentId,omitempty"`
	SessionKey     string            `json:"sessionKey"`
	IdempotencyKey string            `json:"idempotencyKey"`
	Timeout        int               `json:"timeout,omitempty"` // seconds
	Deliver        bool              `json:"deliver"`
	SystemPrompt   string            `json:"extraSystemPrompt,omitempty"`
	Headers        map[string]string `json:"outboundHeaders,omitempty"` // only Atoll's fork of OpenClaw accepts them
}

// Turn is a task that a gateway has accepted.
type Turn struct {
	client *Client
	call   *call
	hello  *Hello
	RunID  string
}

// Outcome is how a turn ended.
type Outcome struct {
	// Result is the envelope of an agent's answer; nil if the connection was lost
	// meanwhile, and only the end of the turn is known.
	Result json.RawMessage
	// Status is ok, error or aborted; Reason and Reply are the gateway's texts.
	Status, Reason, Reply string
}

// Agent submits a task and returns when the gateway has accepted it.
func (c *Client) Agent(ctx context.Context, p *AgentParams) (*Turn, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	l, err := c.connected(ctx)
	if err != nil {
		return nil, err
	}
	k, err := l.ask(ctx, "agent", p)
	if err != nil {
		return nil, err
	}
	payload, err := k.next(ctx)
	if err != nil {
		l.forget(k)
		return nil, err
	}
	var accepted struct {
		RunID  string `json:"runId"`
		Status string `json:"status"`
	}
	if json.Unmarshal(payload, &accepted) != nil || accepted.RunID == "" {
		l.forget(k)
		return nil, errors.New("agent: the gateway's answer cannot be read")
	}
	t := &Turn{client: c, call: k, hello: l.hello, RunID: accepted.RunID}
	if accepted.Status != "accepted" { // a repeated request: this is the end of the task
		k.answers <- &frame{OK: true, Payload: payload}
	}
	return t, nil
}

// Reattach returns a turn that was accepted over an earlier connection, with the
// hello of that connection.
func (c *Client) Reattach(runID string, hello *Hello) *Turn {
	return &Turn{client: c, hello: hello, RunID: runID}
}

// Wait waits for the end of the turn, over as many connections as it takes. It
// returns ErrRestarted if the gateway's process changed.
func (t *Turn) Wait(ctx context.Context) (*Outcome, error) {
	if t.call != nil {
		defer t.call.link.forget(t.call)
		payload, err := t.call.next(ctx)
		if err == nil {
			return readOutcome(payload)
		}
		if !errors.Is(err, ErrLost) {
			return nil, err
		}
	}
	for {
		outcome, err := t.poll(ctx)
		if outcome != nil || err != nil {
			return outcome, err
		}
	}
}

// waitStep is the timeout of one agent.wait call.
const waitStep = 10 * time.Second

// poll calls agent.wait on the present connection. It returns nothing if the turn
// is still under way, or the connection is lost again.
func (t *Turn) poll(ctx context.Context) (*Outcome, error) {
	l, err := t.client.connected(ctx)
	if err != nil {
		return nil, err
	}
	if !t.hello.SameBoot(l.hello) {
		return nil, fmt.Errorf("agent: %w", ErrRestarted)
	}
	asked, cancel := context.WithTimeout(ctx, waitStep+t.client.options.Timeout)
	defer cancel()
	var end struct {
		Status string `json:"status"`
		Error  any    `json:"error"`
		Reply  struct {
			Text string `json:"text"`
		} `json:"terminalReply"`
	}
	err = t.client.Call(asked, "agent.wait", map[string]any{"runId": t.RunID, "timeoutMs": waitStep.Milliseconds()}, &end)
	switch {
	case errors.Is(err, ErrLost) || err != nil && ctx.Err() == nil && asked.Err() != nil:
		return nil, nil
	case err != nil:
		return nil, err
	case end.Status == "timeout" || end.Status == "pending" || end.Status == "":
		return nil, nil
	}
	return &Outcome{Status: end.Status, Reason: reason(end.Error), Reply: end.Reply.Text}, nil
}

func readOutcome(payload json.RawMessage) (*Outcome, error) {
	var end struct {
		Status  string          `json:"status"`
		Summary string          `json:"summary"`
		Error   any             `json:"error"`
		Result  json.RawMessage `json:"result"`
	}
	if err := json.Unmarshal(payload, &end); err != nil {
		return nil, errors.New("agent: the gateway's answer cannot be read")
	}
	o := &Outcome{Result: end.Result, Status: end.Status, Reason: reason(end.Error)}
	if o.Reason == "" && end.Status != "ok" {
		o.Reason = shorten(end.Summary)
	}
	return o, nil
}

// reason returns a gateway's text about a failure, which is a string or an object
// with one.
func reason(v any) string {
	switch v := v.(type) {
	case string:
		return shorten(v)
	case map[string]any:
		text, _ := v["message"].(string)
		return shorten(text)
	}
	return ""
}

func shorten(s string) string {
	if len(s) <= maxErrorText {
		return s
	}
	return cut(s, maxErrorText)
}
