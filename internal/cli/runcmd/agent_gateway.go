package runcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/agent"
	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/cli/backend"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/gateway/session"
	money "github.com/atoll-run/atoll/internal/model/usage"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/run/execute"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// agentViaGateway gives a task to the gateway's agent, and shows it as one of this
// process.
func agentViaGateway(ctx context.Context, g *backend.Gateway, e *env, task *agentOrder) error {
	o := task.options
	if o.scope != "" {
		return console.WithCode(console.ExitUsage, errhint.With(errors.New("--scope is not for a gateway, which has its own configuration"), "give --local too, or set sandbox.scope in the gateway's configuration"))
	}
	p, err := g.Settings.Plan(provide.Subject{AgentID: o.agent, SessionKey: o.sessionKey, Account: o.account})
	if err != nil {
		return err
	}
	if a, err := e.Open(ctx); err == nil {
		e.SaySharing(ctx, a, provide.Subject{AgentID: o.agent, SessionKey: o.sessionKey, Account: o.account})
	}
	begun, err := g.Client.Submit(console.WithTrace(ctx, o.trace, o.runID), p.Session.Key, o.request(task), "")
	if err != nil {
		return backend.ProblemError(err)
	}
	w := &remoteAgent{gateway: g, env: e, options: o, view: newAgentView(e, o.asJSON), name: p.Agent.ID}
	w.ready = e.Progress("preparing the sandbox")
	over, err := w.follow(ctx, begun.ID)
	w.ready()
	if err != nil {
		return backend.ProblemError(err)
	}
	return w.end(ctx, over)
}

// request is the task as a gateway is asked for it.
func (o *agentOptions) request(task *agentOrder) *api.SendRequest {
	return &api.SendRequest{
		Message: task.message, Account: o.account, Model: o.model, Timeout: int(o.time().Seconds()), MaxTurns: o.maxTurns,
		Budget: api.Budget{USD: o.budget, Tokens: o.maxTokens}, BranchName: task.branch, SessionID: o.sessionID, RunID: cmp.Or(o.runID, execute.NewRunID()), HostTools: o.hostTools,
		Thinking: o.thinking, Attachments: apiAttachments(task.files),
	}
}

// remoteAgent is an agent at work in a gateway.
type remoteAgent struct {
	gateway *backend.Gateway
	env     *env
	options *agentOptions
	view    *agentView
	name    string
	place   session.Location
	ready   func() // ends the progress line, once
}

// follow shows what the agent does until its end. Ctrl-C ends it, as it ends one
// of this process.
func (w *remoteAgent) follow(ctx context.Context, id string) (*api.Task, error) {
	over, err := w.gateway.Client.TaskEvents(ctx, id, 0, func(e api.Event) error { w.event(&e); return nil })
	if err != nil && ctx.Err() != nil {
		over, err = w.gateway.Client.CancelTask(context.WithoutCancel(ctx), id)
	}
	return over, err
}

func (w *remoteAgent) event(e *api.Event) {
	if e.Type == "prepared" && e.Place != nil {
		w.begin((*session.Location)(e.Place))
		return
	}
	w.view.event(agent.Event{
		Type: agent.EventType(e.Type), Text: e.Text, Call: (*chat.Call)(e.Call), IsError: e.IsError, TookMs: e.TookMs, Usage: (*chat.Usage)(e.Usage),
	})
}

func (w *remoteAgent) begin(p *session.Location) {
	w.ready()
	w.ready = func() {}
	w.options.started, w.place = true, *p
	w.view.spent = w.spent
	w.view.begin(w.name, p)
}

// spent asks what the agent has spent so far.
func (w *remoteAgent) spent(ctx context.Context) (money.Charge, error) {
	costs, err := w.gateway.Client.Costs(ctx, api.CostQuery{Run: w.place.Run})
	if err != nil || len(costs.Runs) == 0 {
		return money.Charge{}, err
	}
	return money.Charge{MicroUSD: costs.Runs[0].MicroUSD}, nil
}

// end shows how it ended.
func (w *remoteAgent) end(ctx context.Context, t *api.Task) error {
	if !w.options.started {
		return console.FirstOf(ctx.Err(), notBegun(t))
	}
	end := &agentEnd{
		session: t.SessionID, text: t.Text, model: t.Model, usage: chat.Usage(t.Usage), failure: failureOf(ctx, t),
		report: &session.Report{Run: w.place.Run, Sandbox: w.place.Sandbox, Backend: w.place.Backend, Image: w.place.Image, Model: w.place.Model},
	}
	if r := t.Report; r != nil {
		end.report.Turns, end.report.Calls, end.report.TookMs, end.report.Delivery = r.Turns, r.Calls, r.TookMs, (*session.Delivery)(r.Delivery)
		end.spent = money.Charge{MicroUSD: t.MicroUSD, Unpriced: r.Unpriced}
	}
	err := w.view.end(end)
	if sent := end.report.Delivery; sent != nil && sent.Error != "" {
		err = console.FirstOf(err, errhint.With(errors.New(sent.Error), sent.Hint))
	}
	return console.FirstOf(err, ctx.Err(), w.options.failed(end.failure), undelivered((*run.Delivery)(end.report.Delivery)))
}

// failureOf is why the agent has no answer, in the words of one of this process.
func failureOf(ctx context.Context, t *api.Task) error {
	switch {
	case t.Error == nil:
		return nil
	case ctx.Err() != nil:
		return &agent.Error{Code: agent.CodeStopped, Text: "the run was cancelled"}
	}
	return &agent.Error{Code: t.Error.Code, Text: t.Error.Message}
}

// notBegun is what kept the agent from starting.
func notBegun(t *api.Task) error {
	if t.Error == nil {
		return fmt.Errorf("the gateway: the task is %s, and nothing is known of it", t.State)
	}
	err := errhint.With(errors.New(t.Error.Message), t.Hint)
	switch t.Error.Code {
	case "usage":
		return console.WithCode(console.ExitUsage, err)
	case "denied":
		return console.WithCode(console.ExitDenied, err)
	case "sandbox_unavailable":
		return console.WithCode(console.ExitNoSandbox, err)
	case session.CodeNotStarted:
		return err
	}
	return &agent.Error{Code: t.Error.Code, Text: t.Error.Message, Err: err}
}
