// Package runview shows the events of an agent on a terminal as they happen: its
// words, its tool calls and their results, and what it has used so far.
package runview

import (
	"fmt"
	"strings"

	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/run"
)

// View prints events. Everything in them is foreign text, and printed so that it
// cannot move the cursor or change colours.
type View struct {
	Env *console.Env
	// Used returns what has been used so far, for the line of a tool's result; nil
	// is the number of tokens that the events report.
	Used func() string

	mid    bool // a line has begun
	spoken bool // words of the agent were printed
	tokens int64
}

// Event prints an event of a program. Steps, bills and ends print nothing.
func (v *View) Event(e *run.Event) {
	switch e.Type {
	case "text_delta":
		v.Text(e.Text)
	case "tool_call":
		v.ToolCall(e.Call)
	case "tool_result":
		v.ToolResult(e)
	case "usage_report":
		if e.Usage != nil {
			v.AddTokens(e.Usage.Total())
		}
	case "log":
		v.Line(v.Env.Style().Dim("  " + Clip(e.Text, 200)))
	case "waiting":
		v.Line(v.Env.Style().Dim(Clip(e.Text, 300)))
	}
}

// Spoken reports whether words of the agent were printed.
func (v *View) Spoken() bool { return v.spoken }

// AddTokens counts tokens that the agent has used.
func (v *View) AddTokens(n int64) { v.tokens += n }

// Tokens returns how many tokens the agent has used so far.
func (v *View) Tokens() int64 { return v.tokens }

// Text prints words of the agent as they come.
func (v *View) Text(text string) {
	for line := range strings.Lines(text) {
		body, whole := strings.CutSuffix(line, "\n")
		fmt.Fprint(v.Env.Out, console.Printable(body))
		v.mid, v.spoken = true, true
		if whole {
			fmt.Fprintln(v.Env.Out)
			v.mid = false
		}
	}
}

// Line prints a line of its own.
func (v *View) Line(text string) {
	if v.mid {
		fmt.Fprintln(v.Env.Out)
		v.mid = false
	}
	fmt.Fprintln(v.Env.Out, text)
}

// ToolCall prints a tool call.
func (v *View) ToolCall(c *chat.Call) {
	v.Line(v.Env.Style().Bold("→ "+Clip(c.Name, 60)) + " " + Clip(c.Args, 100))
}

// ToolResult prints the first line of a tool's result. A call that failed is said
// to have failed, by name.
func (v *View) ToolResult(e *run.Event) {
	style, mark := v.Env.Style(), ""
	facts := fmt.Sprintf("%s  %.1f ms%s", Clip(FirstLine(e.Text), 100), e.TookMs, v.used())
	if e.IsError {
		mark = style.Alarm("✗ "+failedName(e.Call)+" failed:") + " "
	} else {
		facts = "← " + facts
	}
	v.Line(mark + style.Dim(facts))
}

func failedName(c *chat.Call) string {
	if c == nil || c.Name == "" {
		return "a tool"
	}
	return Clip(c.Name, 60)
}

// used returns what has been used so far, as the end of a line.
func (v *View) used() string {
	switch {
	case v.Used != nil:
		return " · " + v.Used()
	case v.tokens > 0:
		return fmt.Sprintf(" · %d tokens so far", v.tokens)
	}
	return ""
}

// FirstLine returns the first line of a result that says something: what a command
// printed on standard error comes after a line with its name.
func FirstLine(s string) string {
	s = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(s), "[stderr]"))
	first, _, more := strings.Cut(s, "\n")
	if more {
		return first + " …"
	}
	return first
}

// Clip shortens foreign text to one printable line.
func Clip(s string, most int) string {
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return console.Printable(s)
}
