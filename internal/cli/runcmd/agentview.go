package runcmd

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/agent"
	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/gateway/session"
	money "github.com/atoll-run/atoll/internal/model/usage"
)

// agentView shows an agent at work: what it says, what it calls, how long that
// takes and what has been spent. For programs it shows nothing.
type agentView struct {
	env    *env
	spent  func(context.Context) (money.Charge, error) // so far
	quiet  bool
	lines  *eventLines // of --events; nil otherwise
	mid    bool        // a line is not ended yet
	tokens int64       // so far
}

func (v *agentView) begin(agent string, p *session.Location) {
	for _, n := range p.Notices {
		v.env.Notice(n)
	}
	if v.quiet {
		return
	}
	v.line(v.env.Style().Dim("agent " + agent + " · " + p.Model))
	for _, fact := range whereAgent(p) {
		v.line(v.env.Style().Dim(fact))
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

// event is told by the agent, one at a time.
func (v *agentView) event(e agent.Event) {
	if v.lines != nil {
		v.lines.event(e)
	}
	if v.quiet {
		return
	}
	switch e.Type {
	case agent.TextDelta:
		v.text(e.Text)
	case agent.ToolCall:
		v.line(v.env.Style().Bold("→ "+console.Printable(e.Call.Name)) + " " + clip(e.Call.Args, 100))
	case agent.ToolResult:
		v.result(&e)
	case agent.UsageReport:
		v.tokens += e.Usage.Total()
	case agent.Notice:
		v.line(v.env.Style().Dim(clip(e.Text, 300)))
	}
}

func (v *agentView) result(e *agent.Event) {
	mark := "←"
	if e.IsError {
		mark = "✗"
	}
	v.line(v.env.Style().Dim(fmt.Sprintf("%s %s  %.1f ms · %s", mark, clip(firstLine(e.Text), 100), e.TookMs, v.soFar())))
}

// soFar is what has been spent. Money that cannot be asked for is not shown: it
// is in the end.
func (v *agentView) soFar() string {
	text := fmt.Sprintf("%d tokens", v.tokens)
	if spent, err := v.spent(context.Background()); err == nil {
		text += ", " + money.Dollars(spent.MicroUSD)
	}
	return text + " so far"
}

// text prints what the agent says as it comes, printable and line by line.
func (v *agentView) text(text string) {
	for line := range strings.Lines(text) {
		body, whole := strings.CutSuffix(line, "\n")
		fmt.Fprint(v.env.Out, console.Printable(body))
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

// firstLine is the first line of a result that says something: what a command
// printed on standard error comes after a line with its name.
func firstLine(s string) string {
	s = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(s), "[stderr]"))
	first, _, more := strings.Cut(s, "\n")
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
	return console.Printable(s)
}

// agentEnd is how an agent's work ended.
type agentEnd struct {
	session     string // id of the conversation
	text, model string
	usage       chat.Usage
	report      *session.Report
	failure     error // nil if it is done
	spent       money.Charge
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
		v.line(fmt.Sprintf("%s %s: %s", style.Bold("error"), agent.CodeOf(end.failure), clip(end.failure.Error(), 1000)))
	}
	text := fmt.Sprintf("%d tool calls · %s · %d tokens · %s · receipt %s",
		report.Calls, end.took().Round(time.Millisecond), end.usage.Total(), end.cost(), report.Run)
	if sent := report.Delivery; sent != nil && sent.Branch != "" {
		text += fmt.Sprintf(" · %s: %s", sent.Branch, clip(sent.Note, 500))
	}
	v.line(style.Dim(text))
	return nil
}

// cost is the money, and whether all of it is known.
func (e *agentEnd) cost() string {
	if e.spent.Unpriced > 0 {
		return fmt.Sprintf("%s and %d calls of models without a price", money.Dollars(e.spent.MicroUSD), e.spent.Unpriced)
	}
	return money.Dollars(e.spent.MicroUSD)
}
