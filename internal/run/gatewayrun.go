package run

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/agent/envelope"
	"github.com/atoll-run/atoll/internal/gateway/protocol"
	"github.com/atoll-run/atoll/internal/model/grant"
)

// gatewayRun is one run at a gateway.
type gatewayRun struct {
	exec    *gatewayExec
	client  *protocol.Client
	hello   *protocol.Hello
	job     *Job
	dir     string // of the branch, as the gateway sees it; "" if there is none
	key     string
	stream  *protocol.Stream
	onEvent func(Event)

	started, ended bool
	failed         string // what the agent said went wrong, and was not put right
}

// work chooses the provider that is billed and the model, gives the task and waits for
// the answer.
func (v *gatewayRun) work(ctx context.Context, terms *grant.Terms) (*envelope.Envelope, error) {
	system, err := v.instructions()
	if err != nil {
		return nil, err
	}
	terms.Session = v.key
	headers, err := v.setUp(ctx, terms)
	if errors.Is(err, protocol.ErrLost) { // a connection that was kept may have ended meanwhile
		headers, err = v.setUpAgain(ctx, terms)
	}
	if err != nil {
		return nil, gatewayFailure(err)
	}
	turn, err := v.start(ctx, &protocol.AgentParams{
		Message: v.job.Task(), AgentID: gatewayAgent, SessionKey: v.key, IdempotencyKey: v.job.ID,
		Timeout: seconds(v.job.Inner), SystemPrompt: system, Headers: headers,
	})
	if err != nil { // it may have begun all the same
		return nil, v.abort(ctx, err)
	}
	outcome, err := v.wait(ctx, turn)
	if err != nil {
		return nil, v.abort(ctx, err)
	}
	v.ended = true
	return v.read(ctx, outcome)
}

// setUp chooses the provider that is billed, and the model.
func (v *gatewayRun) setUp(ctx context.Context, terms *grant.Terms) (map[string]string, error) {
	provider, headers, err := v.chooseProvider(ctx, terms)
	if err != nil {
		return nil, err
	}
	return headers, v.setModel(ctx, provider, headers)
}

// setUpAgain is setUp over a new connection. Nothing was begun over the old one.
func (v *gatewayRun) setUpAgain(ctx context.Context, terms *grant.Terms) (headers map[string]string, err error) {
	if err := v.exec.Keys.Release(ctx, v.job.ID, true); err != nil {
		return nil, err
	}
	if v.client, v.hello, err = v.exec.connect(ctx); err != nil {
		return nil, err
	}
	return v.setUp(ctx, terms)
}

// chooseProvider returns the provider whose calls are billed to the run. A run with
// a budget of its own always leases a key of its own (a slot): headers carry no budget.
func (v *gatewayRun) chooseProvider(ctx context.Context, terms *grant.Terms) (provider string, headers map[string]string, err error) {
	open, err := v.exec.Keys.Open(ctx)
	if err != nil {
		return "", nil, err
	}
	if open != "" && terms.Budget == (grant.Budget{}) {
		takes, err := v.exec.takesHeaders(ctx, v.client, v.hello, v.key)
		if err != nil {
			return "", nil, err
		}
		if takes {
			return open, billingHeaders(v.job, terms.Graph), nil
		}
	}
	provider, err = v.exec.Keys.Lease(ctx, terms)
	return provider, nil, err
}

// setModel sets the session's provider and model. A gateway that answers with
// another session or another model is not given the task.
func (v *gatewayRun) setModel(ctx context.Context, provider string, headers map[string]string) error {
	params := map[string]any{"key": v.key, "model": provider + "/" + v.job.Model}
	if headers != nil {
		params["outboundHeaders"] = headers
	}
	var done struct {
		Key   string `json:"key"`
		Entry struct {
			Provider string `json:"providerOverride"`
			Model    string `json:"modelOverride"`
		} `json:"entry"`
	}
	if err := v.client.Call(ctx, "sessions.patch", params, &done); err != nil {
		if refused, ok := errors.AsType[*protocol.Error](err); ok {
			return fail("unknown_model", "the gateway does not take model %s/%s: %s", provider, v.job.Model, printable(refused.Message))
		}
		return err
	}
	if done.Key != v.key || done.Entry.Provider != provider || done.Entry.Model != v.job.Model {
		return fail("gateway_failed", "the gateway has set model %.100q of provider %.100q for session %.200q; asked was %s/%s for %s",
			done.Entry.Model, done.Entry.Provider, done.Key, provider, v.job.Model, v.key)
	}
	return nil
}

// start gives the task. If the connection is lost before the answer, the same
// gateway is asked again: the idempotency key keeps the task from starting twice.
func (v *gatewayRun) start(ctx context.Context, p *protocol.AgentParams) (*protocol.Turn, error) {
	for {
		v.started = true
		turn, err := v.client.Agent(ctx, p)
		if !errors.Is(err, protocol.ErrLost) {
			return turn, err
		}
		hello, err := v.client.Hello(ctx)
		if err != nil {
			return nil, err
		}
		if !v.hello.SameBoot(hello) {
			return nil, protocol.ErrRestarted
		}
	}
}

// wait forwards the session's events until its turn has ended.
func (v *gatewayRun) wait(ctx context.Context, turn *protocol.Turn) (outcome *protocol.Outcome, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		outcome, err = turn.Wait(ctx)
	}()
	for {
		select {
		case <-v.stream.Ready():
			v.forwardEvents(turn.RunID)
		case <-done:
			v.forwardEvents(turn.RunID)
			return outcome, err
		}
	}
}

// forwardEvents passes on the events that arrived. The stream holds no other
// session's; events of another run in this session are left out.
func (v *gatewayRun) forwardEvents(runID string) {
	for _, e := range v.stream.Take() {
		if e.RunID != runID || e.SessionKey != v.key {
			continue
		}
		if e.Stream == "lifecycle" {
			v.noteFailure(&e)
		}
		if event, ok := gatewayEvent(&e); ok {
			v.onEvent(event)
		}
	}
}

// noteFailure keeps the error of a lifecycle event: some releases report a failed
// model in the answer only as a text, like one of the agent.
func (v *gatewayRun) noteFailure(e *protocol.SessionEvent) {
	var data struct {
		Phase string `json:"phase"`
		Error string `json:"error"`
	}
	if json.Unmarshal(e.Data, &data) != nil {
		return
	}
	switch data.Phase {
	case "error":
		v.failed = nonempty(printable(cut(data.Error)), "the agent gave no reason")
	case "start", "end":
		v.failed = ""
	}
}

// gatewayEvent converts an event of the gateway's agent.
func gatewayEvent(e *protocol.SessionEvent) (event Event, ok bool) {
	var data struct {
		Delta   string          `json:"delta"`
		Phase   string          `json:"phase"`
		Name    string          `json:"name"`
		ID      string          `json:"toolCallId"`
		Args    json.RawMessage `json:"args"`
		IsError bool            `json:"isError"`
	}
	if json.Unmarshal(e.Data, &data) != nil {
		return event, false
	}
	call := &chat.Call{ID: data.ID, Name: data.Name, Args: string(data.Args)}
	switch {
	case e.Stream == "assistant" && data.Delta != "":
		return Event{Type: "text_delta", Text: data.Delta}, true
	case e.Stream == "tool" && data.Phase == "start":
		return Event{Type: "tool_call", Call: call}, true
	case e.Stream == "tool" && data.Phase == "result":
		return Event{Type: "tool_result", Call: call, IsError: data.IsError}, true
	}
	return event, false
}

// abort ends a run that has no outcome, and returns why: its caller is gone, its
// time is up, or the gateway failed.
func (v *gatewayRun) abort(ctx context.Context, err error) error {
	if errors.Is(err, protocol.ErrRestarted) {
		v.ended = true
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortPatience)
		defer cancel()
		v.stop(after) // some releases take up again what a restart interrupted
		return errors.Join(gatewayFailure(err), v.exec.Keys.Restarted(after))
	}
	if refused, ok := errors.AsType[*protocol.Error](err); ok {
		v.ended = true
		return fail("agent_failed", "the gateway's agent failed: %s", printable(refused.Message))
	}
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortPatience)
	defer cancel()
	v.stop(after)
	return gatewayFailure(err)
}

// stop ends the session's run and waits until it has.
func (v *gatewayRun) stop(ctx context.Context) {
	if err := v.client.Call(ctx, "chat.abort", map[string]any{"sessionKey": v.key}, nil); err != nil {
		return
	}
	_, err := v.client.Reattach(v.job.ID, v.hello).Wait(ctx)
	v.ended = v.ended || err == nil || errors.Is(err, protocol.ErrRestarted)
}

// release gives the slot back and deletes the session at the gateway.
func (v *gatewayRun) release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortPatience)
	defer cancel()
	err := v.exec.Keys.Release(ctx, v.job.ID, v.ended || !v.started)
	if v.ended {
		// That a transcript stays behind is no reason to call the run failed.
		_ = v.client.Call(ctx, "sessions.delete", map[string]any{"key": v.key, "deleteTranscript": true}, nil)
	}
	return err
}

// read finds the answer. Of a turn that was found again only its end is known: the
// text is the session's last message.
func (v *gatewayRun) read(ctx context.Context, o *protocol.Outcome) (*envelope.Envelope, error) {
	if o.Result != nil {
		e, err := envelope.Parse(o.Result)
		if err != nil {
			return nil, fail("invalid_output", "the gateway's answer cannot be read: %v", err)
		}
		if e.Meta.Error == nil && v.failed != "" {
			e.Meta.Error = &envelope.Error{Kind: "agent_error", Message: v.failed}
		}
		return e, nil
	}
	if o.Status != "ok" {
		e := answerOf(o.Reply)
		e.Meta.Error = &envelope.Error{Kind: "agent_error", Message: nonempty(o.Reason, "the agent ended with "+o.Status)}
		return e, nil
	}
	if o.Reply != "" {
		return answerOf(o.Reply), nil
	}
	return v.lastMessage(ctx)
}

func (v *gatewayRun) lastMessage(ctx context.Context) (*envelope.Envelope, error) {
	var said struct {
		Messages []struct {
			Role    string `json:"role"`
			Content []struct {
				Type string `json:"type"`
				Text string `json:"text"`
			} `json:"content"`
		} `json:"messages"`
	}
	if err := v.client.Call(ctx, "chat.history", map[string]any{"sessionKey": v.key, "limit": 1}, &said); err != nil {
		return nil, gatewayFailure(err)
	}
	if n := len(said.Messages); n > 0 && said.Messages[n-1].Role == "assistant" {
		var text strings.Builder
		for _, part := range said.Messages[n-1].Content {
			if part.Type == "text" {
				text.WriteString(part.Text)
			}
		}
		return answerOf(strings.TrimSpace(text.String())), nil
	}
	return nil, fail("no_output", "the agent ended without an answer")
}
