package protocol

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// AgentParams are those of the method agent.
type AgentParams struct {
	Message        string            `json:"message"`
	AgentID        string            `json:"agentId,omitempty"`
	SessionKey     string            `json:"sessionKey"`
	IdempotencyKey string            `json:"idempotencyKey"`
	Timeout        int               `json:"timeout,omitempty"` // seconds
	Deliver        bool              `json:"deliver"`
	SystemPrompt   string            `json:"extraSystemPrompt,omitempty"`
	Headers        map[string]string `json:"outboundHeaders,omitempty"` // only the fork takes them
}

// Turn is an agent at work for us.
type Turn struct {
	client *Client
	call   *call
	hello  *Hello
	RunID  string
}

// Outcome is how a turn ended.
type Outcome struct {
	// Result is the envelope of an agent's answer; nil if the turn was found
	// again after its connection was lost, and only its end could be learned.
	Result json.RawMessage
	// Status is ok, error or aborted, as the gateway calls it; Reason and Reply
	// are what it says besides.
	Status, Reason, Reply string
}

// Agent gives a task to an agent and returns when the gateway has accepted it.
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
	if accepted.Status != "accepted" { // it was asked before, and this is the end
		k.answers <- &frame{OK: true, Payload: payload}
	}
	return t, nil
}

// Reattach returns a turn that an earlier connection began, of a gateway that
// said hello.
func (c *Client) Reattach(runID string, hello *Hello) *Turn {
	return &Turn{client: c, hello: hello, RunID: runID}
}

// Wait waits for the end of the turn, over as many connections as it takes. It
// ends with ErrRestarted if the gateway is another process by then.
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

// waitStep is how long the gateway is asked to wait for an end at a time.
const waitStep = 10 * time.Second

// poll asks a new connection about the turn. It returns nothing if the turn is
// still under way, or the connection is lost again.
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

// reason is what a gateway says about a failure, a text or an object with one.
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
