package run

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/agent/chat"
)

// The bounds of the events of one run.
const (
	maxEvents     = 10_000
	maxEventBytes = 16 << 20
	maxEventText  = 64 << 10 // of one event
	maxLogged     = 2 << 10  // of a line that is shown as it is
	maxOpenCalls  = 1000     // whose results are waited for
)

// eventLog is the type of a line that a program printed on standard error.
const eventLog = "log"

// progress counts the events that a program has reported so far.
type progress struct {
	events, bytes int
	text          bool // a part of the answer was reported as it came
	calls         map[string]openCall
}

// openCall is a tool call without a result yet.
type openCall struct {
	name string
	at   time.Time
}

// stderrLines returns the function that reads events from lines of standard error.
// The program is hostile: events beyond the bounds, or of a type that only the
// runner emits, are left out. Of a program without events, lines become log events.
func (c *execution) stderrLines(ctx context.Context) func([]byte) bool {
	ctx = context.WithoutCancel(ctx)
	if c.variant.Event == nil {
		return func(line []byte) bool {
			c.outputMu.Lock()
			defer c.outputMu.Unlock()
			if e := (Event{Type: eventLog, Text: cutTo(string(line), maxLogged)}); len(line) > 0 && c.progress.admit(&e, len(e.Text)) {
				c.emit(ctx, e)
			}
			return false
		}
	}
	return func(line []byte) bool {
		c.outputMu.Lock()
		defer c.outputMu.Unlock()
		e, ok := c.variant.Event(line)
		if ok && c.progress.admit(&e, len(line)) {
			c.emit(ctx, e)
		}
		return ok
	}
}

// stdoutLines returns the function that reads events from lines of standard
// output; nil if the variant has none.
func (c *execution) stdoutLines(ctx context.Context) func([]byte) {
	if c.variant.Stream == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	return func(line []byte) {
		c.outputMu.Lock()
		defer c.outputMu.Unlock()
		for _, e := range c.variant.Stream(line) {
			size := len(e.Text)
			if e.Call != nil {
				size += len(e.Call.Args) + len(e.Call.Name) + len(e.Call.ID)
				c.progress.matchCall(&e)
			}
			if c.progress.admit(&e, size) {
				c.emit(ctx, e)
			}
		}
	}
}

// matchCall gives the result of a tool call the name of the call and its duration.
func (t *progress) matchCall(e *Event) {
	switch {
	case e.Type == "tool_call" && len(t.calls) < maxOpenCalls:
		if t.calls == nil {
			t.calls = map[string]openCall{}
		}
		t.calls[e.Call.ID] = openCall{e.Call.Name, time.Now()}
	case e.Type == "tool_result":
		if begun, ok := t.calls[e.Call.ID]; ok {
			delete(t.calls, e.Call.ID)
			e.Call.Name, e.TookMs = begun.name, float64(time.Since(begun.at).Microseconds())/1000
		}
	}
}

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
	default:
		return false
	}
	t.events++
	t.bytes += size
	e.Text = cut(e.Text)
	*e = Event{Type: e.Type, Text: e.Text, Call: e.Call, IsError: e.IsError, TookMs: e.TookMs}
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
