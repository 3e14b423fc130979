package app_test

import (
	"runtime"
	"testing"

	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/run/execute"
)

// dieAt ends the goroutine that reaches a step, as a process ends: before the
// step is written down.
func dieAt(at run.Step) func(run.Step) {
	return func(s run.Step) {
		if s == at {
			runtime.Goexit()
		}
	}
}

// A run finds nothing of the one before it, and leaves nothing for the next:
// not in its workspace, not in its sandbox. Seen to fail when removeAll removes
// nothing and every run of an agent has the same session and directory.
func TestInvariant_ONE_RUN_ONE_SESSION(t *testing.T) {
	b := newBureau(t, execute.Options{})
	const leave = "test ! -e trace && test ! -e /tmp/trace && touch trace /tmp/trace && answer"
	first, second := b.do(scriptTask("first", leave)), b.do(scriptTask("second", leave))
	if first.Text != "done" || second.Text != "done" || first.Sandbox == second.Sandbox {
		t.Errorf("%+v, %+v", first, second)
	}
	b.nothingLeft()
}

// No model is asked before the sandbox answers: a sandbox that cannot be made
// costs nothing, and the first call comes after the step that says that all is
// ready. Seen to fail when execute reaches that step after the program has run.
func TestInvariant_READY_BEFORE_FIRST_TOKEN_inRuns(t *testing.T) {
	s := newSite(t)
	upstream := withLiteLLM(t, s)
	b := openBureau(s, execute.Options{})
	asked := -1
	watch := func(e run.Event) {
		if e.Step == run.Executing {
			asked = len(upstream.Rows())
		}
	}
	r, err := b.runs.Do(t.Context(), scriptTask("ready", askOnce), watch)
	if err != nil || r.Text != "done" || asked != 0 || len(upstream.Rows()) != 1 {
		t.Errorf("%+v, %v: %d calls before it was ready, %d in all", r, err, asked, len(upstream.Rows()))
	}
	s.set("agents.defaults.sandbox.docker.image", "nobody/has-this:never")
	broken := openBureau(s, execute.Options{})
	if r := broken.do(scriptTask("broken", askOnce)); codeOf(r) != "sandbox_failed" || r.Bill.Calls != 0 || len(upstream.Rows()) != 1 {
		t.Errorf("%+v, %+v", r.Error, r.Bill)
	}
}
