package audit

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// maxCounts bounds the text of what a program asked for.
const maxCounts = 4096

// BrowserEvent is a connection to a browser in a sandbox: a program that attached to it,
// or a person who watched it.
type BrowserEvent struct {
	Time    time.Time
	Subject Subject
	Sandbox string
	Event   string // attached, detached, refused, viewed, taken, released
	Token   string // its id, never its secret
	From    string // the address of the client
	Reason  string // of a refusal or an end
	// Passed and Refused say how often each method was asked for.
	Passed, Refused map[string]int
}

func (e *BrowserEvent) header() (Kind, time.Time, *Subject) { return Browser, e.Time, &e.Subject }
func (e *BrowserEvent) limited() bool                       { return true }
func (e *BrowserEvent) appendFields(b []byte, scrub func(string) string) []byte {
	b = appendText(appendText(b, "sandbox", e.Sandbox), "event", e.Event)
	b = appendText(appendText(b, "token", redact(e.Token, scrub)), "from", e.From)
	b = appendText(b, "reason", redact(e.Reason, scrub))
	return appendText(appendText(b, "passed", countsText(e.Passed)), "refused", countsText(e.Refused))
}

// countsText returns counts in one bounded line.
func countsText(counts map[string]int) string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if text.Len() > maxCounts {
			text.WriteString(" …")
			break
		}
		fmt.Fprintf(&text, " %s=%d", name, counts[name])
	}
	return strings.TrimPrefix(text.String(), " ")
}
