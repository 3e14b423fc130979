package runcmd

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/atoll-run/atoll/internal/agent"
	"github.com/atoll-run/atoll/internal/cli/console"
)

// Words are printed soon after they are said, not one by one, also if no other follows.
func TestWordsOfAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := &eventLines{env: &env{&console.Env{Terminal: &console.Terminal{Err: &out}}}, printed: time.Now()}
		say := func(words ...string) int {
			for _, w := range words {
				l.event(agent.Event{Type: agent.TextDelta, Text: w})
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			return strings.Count(out.String(), "\n")
		}
		wait := func(d time.Duration) int { time.Sleep(d); synctest.Wait(); return say() }
		if n := say("a ", "b "); n != 0 {
			t.Errorf("%d events at once: %s", n, out.String())
		}
		if n := wait(pieceTime); n != 1 || !strings.Contains(out.String(), `"a b "`) {
			t.Errorf("%d events after a moment: %s", n, out.String())
		}
		wait(time.Second)
		if n := say("c "); n != 2 {
			t.Errorf("%d events after a second: %s", n, out.String())
		}
		if n := say("d", "\n"); n != 3 {
			t.Errorf("%d events after a line: %s", n, out.String())
		}
		if l.pieces = maxPieces; say("e") != 3 || wait(time.Second) != 3 {
			t.Errorf("above the bound: %s", out.String())
		}
		l.event(agent.Event{Type: agent.Done})
		if n := say(); n != 5 || !strings.Contains(out.String(), `"e"`) {
			t.Errorf("%d events in the end: %s", n, out.String())
		}
	})
}
