package cli

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent"
	"github.com/atoll-run/atoll/internal/agent/envelope"
)

// atollMeta is what we tell beyond the common form.
type atollMeta struct {
	Run      string     `json:"run"`
	Sandbox  string     `json:"sandbox"` // "" without one
	Backend  string     `json:"backend"`
	Turns    int        `json:"turns"`
	Calls    int        `json:"toolCalls"`
	MicroUSD int64      `json:"microUsd"`
	Unpriced int64      `json:"unpricedCalls"`
	Relay    *relayMeta `json:"relay,omitempty"` // of agents that work on a branch
}

// relayMeta is what became of an agent's commits.
type relayMeta struct {
	Branch string `json:"branch"`
	State  string `json:"state"`
	Pull   string `json:"pullRequest,omitempty"`
	Note   string `json:"note"`
}

// value is the meta as part of an envelope.
func (m atollMeta) value() jsontext.Value {
	text, err := json.Marshal(&m)
	if err != nil {
		panic(err) // numbers and texts
	}
	return text
}

// envelope is the result for programs.
func (e *agentEnd) envelope() *envelope.Envelope {
	w, out := e.worker, e.outcome
	extra := atollMeta{Run: w.Run, Turns: out.Turns, Calls: out.Calls, MicroUSD: e.spent.MicroUSD, Unpriced: e.spent.Unpriced}
	if s := w.Plan.Spec; w.Plan.Sandboxed && s != nil {
		extra.Sandbox, extra.Backend = s.Name, s.Backend
	}
	if e.sent != nil {
		extra.Relay = &relayMeta{e.sent.Branch, string(e.sent.Step), e.sent.Pull, e.sent.Note}
	}
	name := cmp.Or(out.Model, w.Models[0].Name)
	provider, _, _ := strings.Cut(name, "/")
	result := emptyEnvelope(extra)
	result.Meta.DurationMs = out.Took.Milliseconds()
	result.Meta.AgentMeta = envelope.AgentMeta{
		SessionID: w.Session, Provider: provider, Model: name,
		Usage: envelope.Usage{Input: out.Usage.Input, Output: out.Usage.Output, Total: out.Usage.Total()},
	}
	if out.Text != "" {
		result.Payloads = append(result.Payloads, envelope.Payload{Text: out.Text})
	}
	if e.failure != nil {
		result.Meta.Error = &envelope.Error{Kind: agent.CodeOf(e.failure), Message: e.failure.Error()}
	}
	return result
}

func emptyEnvelope(extra atollMeta) *envelope.Envelope {
	return &envelope.Envelope{Payloads: []envelope.Payload{}, Meta: envelope.Meta{Atoll: extra.value()}}
}

// sayNotStarted prints the envelope of an agent that could not be started, so
// that programs find the reason where they look for every other.
func (e *env) sayNotStarted(o *agentOptions, err error) error {
	if err == nil || o.started || !o.asJSON || errors.Is(err, context.Canceled) {
		return nil
	}
	result := emptyEnvelope(atollMeta{Run: o.runID})
	result.Meta.AgentMeta.SessionID, result.Meta.AgentMeta.Model = o.sessionID, o.model
	result.Meta.AgentMeta.Provider, _, _ = strings.Cut(o.model, "/")
	result.Meta.Error = &envelope.Error{Kind: notStarted(err), Message: unwrapCode(err).Error()}
	return e.printJSON(result)
}

// notStarted names what kept an agent from starting.
func notStarted(err error) string {
	if _, ok := errors.AsType[*agent.Error](err); ok {
		return agent.CodeOf(err)
	}
	switch code(err) {
	case exitUsage:
		return "usage"
	case exitDenied:
		return "denied"
	case exitNoSandbox:
		return "sandbox_unavailable"
	}
	return "not_started"
}
