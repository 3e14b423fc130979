package run

import (
	"time"

	"github.com/atoll-run/atoll/internal/agent/chat"
)

// The bounds of the events that one program can report.
const (
	maxEvents     = 10_000
	maxEventBytes = 16 << 20
	maxEventText  = 64 << 10      // of one event
	maxLogged     = 2 << 10       // of a line that is shown as it is
	maxOpenCalls  = 1000          // without a result yet
	maxTokens     = 1 << 40       // of one usage report
	maxDollars    = 1e6           // of one usage report
	maxTookMs     = 7 * 86400_000 // of one tool call
)

// Types of events that programs report.
const (
	eventLog   = "log"          // a line that a program printed on standard error
	eventUsage = "usage_report" // tokens that a program says it has used
)

// progress counts the events that a program has reported so far.
type progress struct {
	events, bytes int
	text          bool       // a part of the answer was reported as it came
	usage         chat.Usage // as the program reports it
	calls         map[string]openCall
}

// openCall is a tool call without a result yet.
type openCall struct {
	name string
	at   time.Time
}

// matchCall gives the result of a tool call the name of the call and, where the
// program reports none, its duration.
func (t *progress) matchCall(e *Event) {
	switch {
	case e.Call == nil:
	case e.Type == "tool_call" && len(t.calls) < maxOpenCalls:
		if t.calls == nil {
			t.calls = map[string]openCall{}
		}
		t.calls[e.Call.ID] = openCall{e.Call.Name, time.Now()}
	case e.Type == "tool_result":
		begun, ok := t.calls[e.Call.ID]
		delete(t.calls, e.Call.ID)
		if ok && e.TookMs == 0 {
			e.TookMs = float64(time.Since(begun.at).Microseconds()) / 1000
		}
		if ok {
			e.Call.Name = begun.name
		}
	}
}

// admit reports whether an event is one that a program can report, and within the
// bounds; it cuts the event to what such an event has.
func (t *progress) admit(e *Event, size int) bool {
	if t.events >= maxEvents || t.bytes+size > maxEventBytes {
		return false
	}
	switch e.Type {
	case "text_delta":
		t.text = true
	case eventLog:
	case "tool_call", "tool_result":
		if e.Call == nil {
			return false
		}
		e.Call = &chat.Call{ID: cut(e.Call.ID), Name: cut(e.Call.Name), Args: cut(e.Call.Args)}
	case eventUsage:
		if e.Usage == nil {
			return false
		}
		return t.admitUsage(e)
	default:
		return false
	}
	t.events++
	t.bytes += size
	e.Text = cut(e.Text)
	*e = Event{Type: e.Type, Text: e.Text, Call: e.Call, IsError: e.IsError, TookMs: e.TookMs}
	return true
}

// admitUsage admits a usage report, each of its numbers within its bound.
func (t *progress) admitUsage(e *Event) bool {
	u := *e.Usage
	for _, n := range []*int64{&u.Input, &u.Output, &u.CacheRead, &u.CacheWrite} {
		*n = min(max(*n, 0), maxTokens)
	}
	t.events++
	t.usage = t.usage.Plus(u)
	*e = Event{Type: eventUsage, Usage: &u, MicroUSD: min(max(e.MicroUSD, 0), maxDollars*1e6)}
	return true
}

// cut keeps the beginning of a long text, at the end of a character.
func cut(s string) string { return cutTo(s, maxEventText) }

func cutTo(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}
