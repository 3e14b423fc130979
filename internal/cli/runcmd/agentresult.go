package runcmd

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent"
	"github.com/atoll-run/atoll/internal/agent/envelope"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/cli/dirsandbox"
	"github.com/atoll-run/atoll/internal/run"
)

// atollMeta is what we tell beyond the common form.
type atollMeta struct {
	Run      string              `json:"run"`
	Sandbox  string              `json:"sandbox"` // "" without one
	Backend  string              `json:"backend"`
	Image    string              `json:"image"` // that it is made of
	Turns    int                 `json:"turns"`
	Calls    int                 `json:"toolCalls"`
	MicroUSD int64               `json:"microUsd"`
	Unpriced int64               `json:"unpricedCalls"`
	Relay    *relayMeta          `json:"relay,omitempty"`   // of agents that work on a branch
	Changes  *dirsandbox.Changes `json:"changes,omitempty"` // of agents that work on a checkout
}

// relayMeta is what became of an agent's commits.
type relayMeta struct {
	Branch string `json:"branch"`
	State  string `json:"state"`
	Pull   string `json:"pullRequest,omitempty"`
	Note   string `json:"note"`
}

func relayMetaOf(d *run.Delivery) *relayMeta {
	if d == nil || d.Branch == "" {
		return nil
	}
	return &relayMeta{d.Branch, d.State, d.Pull, d.Note}
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
	r := e.report
	extra := atollMeta{
		Run: r.Run, Sandbox: r.Sandbox, Backend: r.Backend, Image: r.Image, Turns: r.Turns, Calls: r.Calls, MicroUSD: e.spent.MicroUSD, Unpriced: e.spent.Unpriced,
	}
	extra.Changes = e.changes
	extra.Relay = relayMetaOf((*run.Delivery)(r.Delivery))
	name := cmp.Or(e.model, r.Model)
	provider, _, _ := strings.Cut(name, "/")
	result := emptyEnvelope(extra)
	result.Meta.DurationMs = e.took().Milliseconds()
	result.Meta.AgentMeta = envelope.AgentMeta{
		SessionID: e.session, Provider: provider, Model: name,
		Usage: envelope.Usage{Input: e.usage.Input, Output: e.usage.Output, Total: e.usage.Total()},
	}
	if e.text != "" {
		result.Payloads = append(result.Payloads, envelope.Payload{Text: e.text})
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
	return e.PrintJSON(result)
}

// notStarted names what kept an agent from starting.
func notStarted(err error) string {
	if _, ok := errors.AsType[*agent.Error](err); ok {
		return agent.CodeOf(err)
	}
	switch console.Code(err) {
	case console.ExitUsage:
		return "usage"
	case console.ExitDenied:
		return "denied"
	case console.ExitNoSandbox:
		return "sandbox_unavailable"
	}
	return "not_started"
}
