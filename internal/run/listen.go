package run

import (
	"context"

	"github.com/atoll-run/atoll/internal/agent/chat"
)

// What a program can make us keep of its own account.
const (
	maxToldEvents = 10_000
	maxToldBytes  = 16 << 20
	maxToldText   = 64 << 10 // of one event
)

// teller is what a program has told of its work so far.
type teller struct {
	events, bytes int
	text          bool // some of its answer was told as it came
}

// listen takes what a program tells of its work. The program is hostile: what is
// too much, or of a type that is ours to tell, is left out.
func (c *course) listen(ctx context.Context) func([]byte) bool {
	if c.variant.Event == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	return func(line []byte) bool {
		e, ok := c.variant.Event(line)
		if ok && c.told.admit(&e, len(line)) {
			c.tell(ctx, e)
		}
		return ok
	}
}

func (t *teller) admit(e *Event, size int) bool {
	if t.events >= maxToldEvents || t.bytes+size > maxToldBytes {
		return false
	}
	switch e.Type {
	case "text_delta":
		t.text = true
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
func cut(s string) string {
	if len(s) <= maxToldText {
		return s
	}
	n := maxToldText
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}
