package run

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/agent/chat"
)

// What a program can make us keep of its own account.
const (
	maxToldEvents = 10_000
	maxToldBytes  = 16 << 20
	maxToldText   = 64 << 10 // of one event
	maxLogged     = 2 << 10  // of a line that is shown as it is
	maxOpenCalls  = 1000     // whose results are waited for
)

// logged is the type of a line that a program printed on standard error.
const logged = "log"

// teller is what a program has told of its work so far.
type teller struct {
	events, bytes int
	text          bool // some of its answer was told as it came
	calls         map[string]begunCall
}

// begunCall is a call of a tool whose result was not told yet.
type begunCall struct {
	name string
	at   time.Time
}

// listen takes what a program tells of its work on standard error. The program is
// hostile: what is too much, or of a type that is ours to tell, is left out. What
// a program that tells nothing prints there is shown as it is.
func (c *course) listen(ctx context.Context) func([]byte) bool {
	ctx = context.WithoutCancel(ctx)
	if c.variant.Event == nil {
		return func(line []byte) bool {
			c.hearing.Lock()
			defer c.hearing.Unlock()
			if e := (Event{Type: logged, Text: cutTo(string(line), maxLogged)}); len(line) > 0 && c.told.admit(&e, len(e.Text)) {
				c.tell(ctx, e)
			}
			return false
		}
	}
	return func(line []byte) bool {
		c.hearing.Lock()
		defer c.hearing.Unlock()
		e, ok := c.variant.Event(line)
		if ok && c.told.admit(&e, len(line)) {
			c.tell(ctx, e)
		}
		return ok
	}
}

// overhear takes what a program tells of its work on standard output.
func (c *course) overhear(ctx context.Context) func([]byte) {
	if c.variant.Stream == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	return func(line []byte) {
		c.hearing.Lock()
		defer c.hearing.Unlock()
		for _, e := range c.variant.Stream(line) {
			size := len(e.Text)
			if e.Call != nil {
				size += len(e.Call.Args) + len(e.Call.Name) + len(e.Call.ID)
				c.told.name(&e)
			}
			if c.told.admit(&e, size) {
				c.tell(ctx, e)
			}
		}
	}
}

// name gives the result of a call the name of the call, and the time that it took.
func (t *teller) name(e *Event) {
	switch {
	case e.Type == "tool_call" && len(t.calls) < maxOpenCalls:
		if t.calls == nil {
			t.calls = map[string]begunCall{}
		}
		t.calls[e.Call.ID] = begunCall{e.Call.Name, time.Now()}
	case e.Type == "tool_result":
		if begun, ok := t.calls[e.Call.ID]; ok {
			delete(t.calls, e.Call.ID)
			e.Call.Name, e.TookMs = begun.name, float64(time.Since(begun.at).Microseconds())/1000
		}
	}
}

func (t *teller) admit(e *Event, size int) bool {
	if t.events >= maxToldEvents || t.bytes+size > maxToldBytes {
		return false
	}
	switch e.Type {
	case "text_delta":
		t.text = true
	case logged:
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
func cut(s string) string { return cutTo(s, maxToldText) }

func cutTo(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}
