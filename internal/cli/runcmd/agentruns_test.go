package runcmd

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/agent"
	"github.com/atoll-run/atoll/internal/cli/console"
)

// Words are printed soon after they are said, not one by one.
func TestWordsOfAMoment(t *testing.T) {
	var out bytes.Buffer
	l := &eventLines{env: &env{&console.Env{Terminal: &console.Terminal{Err: &out}}}, printed: time.Now()}
	say := func(words ...string) int {
		for _, w := range words {
			l.event(agent.Event{Type: agent.TextDelta, Text: w})
		}
		return strings.Count(out.String(), "\n")
	}
	if n := say("a ", "b "); n != 0 {
		t.Errorf("%d events at once: %s", n, out.String())
	}
	l.printed = time.Now().Add(-time.Second)
	if n := say("c "); n != 1 || !strings.Contains(out.String(), `"a b c "`) {
		t.Errorf("%d events after a second: %s", n, out.String())
	}
	if n := say("d", "\n"); n != 2 {
		t.Errorf("%d events after a line: %s", n, out.String())
	}
	l.printed, l.pieces = time.Now().Add(-time.Second), maxPieces
	if n := say("e"); n != 2 {
		t.Errorf("%d events above the bound: %s", n, out.String())
	}
	l.event(agent.Event{Type: agent.Done})
	if n := say(); n != 4 || !strings.Contains(out.String(), `"e"`) {
		t.Errorf("%d events in the end: %s", n, out.String())
	}
}
