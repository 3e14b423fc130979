package runcmd

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/agent"
	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/cli/dirsandbox"
	"github.com/atoll-run/atoll/internal/cli/runview"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/gateway/session"
	money "github.com/atoll-run/atoll/internal/model/usage"
	"github.com/atoll-run/atoll/internal/run"
)

// agentView shows an agent at work: what it says, what it calls, how long that
// takes and what has been spent. For programs it shows nothing.
type agentView struct {
	runview.View
	env   *env
	spent func(context.Context) (money.Charge, error) // so far
	quiet bool
	lines *eventLines // of --events; nil otherwise
}

func newAgentView(e *env, quiet bool) *agentView {
	v := &agentView{View: runview.View{Env: e.Env}, env: e, quiet: quiet}
	v.Used = v.soFar
	return v
}

func (v *agentView) begin(agent string, p *session.Location) {
	for _, n := range p.Notices {
		v.env.Notice(n)
	}
	if v.quiet {
		return
	}
	v.Line(v.env.Style().Dim("agent " + agent + " · " + p.Model))
	for _, fact := range whereAgent(p) {
		v.Line(v.env.Style().Dim(fact))
	}
}

// whereAgent says where an agent's tools work, and what holds there.
func whereAgent(p *session.Location) []string {
	if p.Sandbox == "" {
		return []string{"its tools work on the host, without a sandbox"}
	}
	files := map[config.Access]string{
		config.AccessNone:    "private, with the behaviour files alone",
		config.AccessRO:      "private, read-only; the workspace is at /agent, read-only",
		config.AccessOverlay: "the workspace; changes are kept apart until they are approved",
		config.AccessRW:      "the workspace itself",
	}[config.Access(p.Access)]
	return []string{
		fmt.Sprintf("sandbox %s (%s, image %s)", p.Sandbox, p.Backend, console.OrDash(p.Image)),
		fmt.Sprintf("network %s · no credential · %s: %s · limits: %s", p.Network, p.Workdir, files, cmp.Or(p.Limits, "none")),
	}
}

// event shows an event of the agent, one at a time.
func (v *agentView) event(e agent.Event) {
	if v.lines != nil {
		v.lines.event(e)
	}
	if v.quiet {
		return
	}
	if e.Type == agent.Notice {
		v.Line(v.env.Style().Dim(runview.Clip(e.Text, 300)))
	}
	v.Event(&run.Event{Type: string(e.Type), Text: e.Text, Call: e.Call, IsError: e.IsError, TookMs: e.TookMs, Usage: e.Usage})
}

// soFar is what has been spent. Money that cannot be asked for is not shown: it
// is in the end.
func (v *agentView) soFar() string {
	text := fmt.Sprintf("%d tokens", v.Tokens())
	if spent, err := v.spent(context.Background()); err == nil {
		text += ", " + money.Dollars(spent.MicroUSD)
	}
	return text + " so far"
}

// agentEnd is how an agent's work ended.
type agentEnd struct {
	session     string // id of the conversation
	text, model string
	usage       chat.Usage
	report      *session.Report
	failure     error // nil if it is done
	spent       money.Charge
	changes     *dirsandbox.Changes // of the checkout; nil if it worked on none
}

func (e *agentEnd) took() time.Duration {
	return time.Duration(e.report.TookMs * float64(time.Millisecond))
}

// end prints how it ended. An agent that failed has ended too.
func (v *agentView) end(end *agentEnd) error {
	if v.quiet {
		return v.env.PrintJSON(end.envelope())
	}
	style, report := v.env.Style(), end.report
	if end.failure != nil {
		v.Line(fmt.Sprintf("%s %s: %s", style.Bold("error"), agent.CodeOf(end.failure), runview.Clip(end.failure.Error(), 1000)))
	}
	text := fmt.Sprintf("%d tool calls · %s · %d tokens · %s · receipt %s",
		report.Calls, end.took().Round(time.Millisecond), end.usage.Total(), end.cost(), report.Run)
	if sent := report.Delivery; sent != nil && sent.Branch != "" {
		text += fmt.Sprintf(" · %s: %s", sent.Branch, runview.Clip(sent.Note, 500))
	}
	v.Line(style.Dim(text))
	end.changes.Say(v.env.Err, true)
	return nil
}

// cost is the money, and whether all of it is known.
func (e *agentEnd) cost() string {
	if e.spent.Unpriced > 0 {
		return fmt.Sprintf("%s and %d calls of models without a price", money.Dollars(e.spent.MicroUSD), e.spent.Unpriced)
	}
	return money.Dollars(e.spent.MicroUSD)
}
