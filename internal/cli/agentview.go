package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/agent"
	"github.com/atoll-run/atoll/internal/agent/envelope"
	"github.com/atoll-run/atoll/internal/app"
	money "github.com/atoll-run/atoll/internal/usage"
)

// agentView shows an agent at work: what it says, what it calls and how long
// that takes. For programs it shows nothing.
type agentView struct {
	env   *env
	quiet bool
	mid   bool // a line is not ended yet
	calls int
}

func (e *env) agentView(o *agentOptions) *agentView { return &agentView{env: e, quiet: o.asJSON} }

func (v *agentView) begin(w *app.Worker) {
	for _, n := range w.Notices {
		v.env.notice(n)
	}
	if v.quiet {
		return
	}
	where := "the host, without a sandbox"
	if s := w.Plan.Spec; w.Plan.Sandboxed && s != nil {
		where = fmt.Sprintf("sandbox %s (%s, image %s, network %s)", s.Name, s.Backend, orDash(s.Image), s.Network)
	}
	v.line(v.env.style().dim("agent " + w.Plan.Agent.ID + " · " + w.Models[0].Name + " · " + where))
}

// event is told by the agent, one at a time.
func (v *agentView) event(e agent.Event) {
	if v.quiet {
		return
	}
	switch e.Type {
	case agent.TextDelta:
		v.text(e.Text)
	case agent.ToolCall:
		v.calls++
		v.line(v.env.style().bold("→ "+printable(e.Call.Name)) + " " + clip(e.Call.Args, 100))
	case agent.ToolResult:
		v.result(&e)
	case agent.Notice:
		v.line(v.env.style().dim(clip(e.Text, 300)))
	}
}

func (v *agentView) result(e *agent.Event) {
	mark := "←"
	if e.IsError {
		mark = "✗"
	}
	v.line(v.env.style().dim(fmt.Sprintf("%s %s  %.1f ms", mark, clip(firstLine(e.Text), 100), e.TookMs)))
}

// text prints what the agent says as it comes, printable and line by line.
func (v *agentView) text(text string) {
	for line := range strings.Lines(text) {
		body, whole := strings.CutSuffix(line, "\n")
		fmt.Fprint(v.env.Out, printable(body))
		v.mid = true
		if whole {
			fmt.Fprintln(v.env.Out)
			v.mid = false
		}
	}
}

func (v *agentView) line(text string) {
	if v.mid {
		fmt.Fprintln(v.env.Out)
		v.mid = false
	}
	fmt.Fprintln(v.env.Out, text)
}

func firstLine(s string) string {
	first, _, more := strings.Cut(strings.TrimSpace(s), "\n")
	if more {
		return first + " …"
	}
	return first
}

// clip shortens foreign words to one printable line.
func clip(s string, most int) string {
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return printable(s)
}

// atollMeta is what we tell beyond the common form.
type atollMeta struct {
	Run      string `json:"run"`
	Sandbox  string `json:"sandbox,omitempty"`
	Backend  string `json:"backend,omitempty"`
	Turns    int    `json:"turns"`
	Calls    int    `json:"toolCalls"`
	MicroUSD int64  `json:"microUsd"`
	Unpriced int64  `json:"unpricedCalls,omitzero"`
}

// end prints how it ended. An agent that failed has ended too.
func (v *agentView) end(w *app.Worker, out *agent.Outcome, failure error, spent money.Charge) error {
	e := v.env
	if v.quiet {
		return e.printEnvelope(w, out, failure, spent)
	}
	if failure != nil {
		v.line(fmt.Sprintf("%s %s: %s", e.style().bold("error"), agent.CodeOf(failure), clip(failure.Error(), 1000)))
	}
	v.line(e.style().dim(fmt.Sprintf("%s · %d tool calls · %d tokens · %s · %s", w.Run, out.Calls, out.Usage.Total(), money.Dollars(spent.MicroUSD), out.Took.Round(time.Millisecond))))
	return nil
}

func spentBy(ctx context.Context, a *app.App, run string) (money.Charge, error) {
	ledger, err := a.Ledger(ctx)
	if err != nil {
		return money.Charge{}, err
	}
	return ledger.Spent(ctx, money.ScopeRun, run)
}

func (e *env) printEnvelope(w *app.Worker, out *agent.Outcome, failure error, spent money.Charge) error {
	meta := atollMeta{Run: w.Run, Turns: out.Turns, Calls: out.Calls, MicroUSD: spent.MicroUSD, Unpriced: spent.Unpriced}
	if s := w.Plan.Spec; w.Plan.Sandboxed && s != nil {
		meta.Sandbox, meta.Backend = s.Name, s.Backend
	}
	extra, err := json.Marshal(&meta)
	if err != nil {
		return err
	}
	name := out.Model
	if name == "" {
		name = w.Models[0].Name
	}
	provider, _, _ := strings.Cut(name, "/")
	result := envelope.Envelope{Payloads: []envelope.Payload{}, Meta: envelope.Meta{
		DurationMs: out.Took.Milliseconds(),
		AgentMeta: envelope.AgentMeta{
			SessionID: w.Session, Provider: provider, Model: name,
			Usage: envelope.Usage{Input: out.Usage.Input, Output: out.Usage.Output, Total: out.Usage.Total()},
		},
		Atoll: extra,
	}}
	if out.Text != "" {
		result.Payloads = append(result.Payloads, envelope.Payload{Text: out.Text})
	}
	if failure != nil {
		result.Meta.Error = &envelope.Error{Kind: agent.CodeOf(failure), Message: failure.Error()}
	}
	return e.printJSON(&result)
}
