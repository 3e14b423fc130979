package app_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/run/execute"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	scripted "github.com/atoll-run/atoll/internal/testkit/litellmtest"
)

const goodEnvelope = `{"payloads":[{"text":"done","mediaUrl":null}],"meta":{"durationMs":1,"agentMeta":{"sessionId":"s","provider":"p","model":"p/m"},"error":null}}`

// scriptAgent is an agent that is a shell script: the task. It prints an envelope
// with `answer`.
func scriptAgent() run.Variant {
	v := run.Custom{ID: "script", Argv: []string{"/bin/sh", "-c", "answer() { echo '" + goodEnvelope + "'; }\n{task}"}, Timeout: patience}.Variant()
	v.Margin = 0
	return v
}

// bureau is an installation that carries out runs on the shared engine.
type bureau struct {
	*site
	app  *app.App
	runs *execute.Runs
}

func newBureau(t *testing.T, o execute.Options) *bureau {
	t.Helper()
	return openBureau(newSite(t), o)
}

// openBureau opens an installation as a new process would.
func openBureau(s *site, o execute.Options) *bureau {
	s.t.Helper()
	a := s.open()
	o.Variants, o.Program = append(o.Variants, scriptAgent()), "/bin/sh"
	cfg, err := a.Config.LLM()
	if err != nil {
		s.t.Fatal(err)
	}
	o.Demo = cfg.Default // agents that ask no model need one all the same
	runs, err := a.Runs.Open(o)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := runs.Close(); err != nil {
			s.t.Error(err)
		}
	})
	return &bureau{s, a, runs}
}

func scriptTask(id, script string) *execute.Task {
	return &execute.Task{ID: id, Variant: "script", Messages: []chat.Message{{Role: chat.User, Text: script}}}
}

// do carries out a task, which must come to an end.
func (b *bureau) do(task *execute.Task) *run.Receipt {
	b.t.Helper()
	r, err := b.runs.Do(b.t.Context(), task, nil)
	if err != nil || r == nil || r.Step != run.Over {
		b.t.Fatalf("%s: %+v, %v", task.ID, r, err)
	}
	return r
}

// nothingLeft looks for what a run should not leave.
func (b *bureau) nothingLeft() {
	b.t.Helper()
	left, err := os.ReadDir(filepath.Join(b.state, execute.Dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		b.t.Fatal(err)
	}
	if containers, rows := b.ours(), b.rows(b.app); len(left)+len(containers)+len(rows) > 0 {
		b.t.Errorf("left: directories %v, containers %v, rows %v", left, containers, rows)
	}
}

func codeOf(r *run.Receipt) string {
	if r.Error == nil {
		return ""
	}
	return r.Error.Code
}

// Whatever a program does, the run ends with a code, a receipt, and nothing left.
func TestRunEnds(t *testing.T) {
	b := newBureau(t, execute.Options{})
	for name, c := range map[string]struct {
		script  string
		code    string
		says    string
		seconds int
	}{
		"answers":                 {script: "answer"},
		"its own error":           {script: `answer | sed 's/"error":null/"error":{"kind":"context_overflow","message":"full"}/'`, code: "context_overflow"},
		"fails":                   {script: "echo no such flag >&2; exit 1", code: "agent_failed", says: "no such flag"},
		"says nothing":            {script: "exit 0", code: "no_output"},
		"talks nonsense":          {script: "echo segmentation fault; echo core >&2", code: "invalid_output", says: "core"},
		"megabytes before":        {script: "head -c 5000000 /dev/zero | tr '\\0' x; echo; answer"},
		"is killed":               {script: "kill -9 $$", code: "killed"},
		"ignores TERM":            {script: "trap '' TERM; while :; do sleep 1; done", code: "timeout", seconds: 2},
		"forks a daemon":          {script: "setsid sleep 1000 & answer"},
		"takes too much memory":   {script: "dd if=/dev/zero of=/dev/null bs=200M count=1", code: "oom_killed"},
		"fills its disk":          {script: "head -c 300000000 /dev/zero >/tmp/x || { rm /tmp/x; answer; }"},
		"fills it and ends":       {script: "dd if=/dev/zero of=/tmp/x bs=1M count=300", code: "agent_failed", says: "space"},
		"has no disk of its own":  {script: "echo x > /etc/x || answer"},
		"has nobody to ask":       {script: "wget -qO- -T 2 http://example.org || answer"},
		"does not find its state": {script: "test -e " + b.state + " || answer"},
	} {
		task := scriptTask(strings.ReplaceAll(name, " ", "-"), c.script)
		task.Timeout, task.Memory = time.Duration(c.seconds)*time.Second, 64<<20
		r := b.do(task)
		if codeOf(r) != c.code || c.code == "" && r.Text != "done" || c.says != "" && !strings.Contains(r.Error.Message, c.says) {
			t.Errorf("%s: %q, %+v; want %q with %q", name, r.Text, r.Error, c.code, c.says)
		}
	}
	b.nothingLeft()
}

// A disk that runs full ends the run before Atoll cannot write its receipt any
// more, and the next does not begin.
func TestRunDiskFull(t *testing.T) {
	b := newBureau(t, execute.Options{})
	var full atomic.Bool
	b.app.MeasureFree = func() (int64, error) {
		if full.Load() {
			return provide.DiskReserve - 1, nil
		}
		return provide.DiskReserve, nil
	}
	watch := func(e run.Event) {
		if e.Step == run.Executing {
			full.Store(true)
		}
	}
	r, err := b.runs.Do(t.Context(), scriptTask("filling", "while :; do sleep 1; done"), watch)
	if err != nil || codeOf(r) != "disk_full" || r.Step != run.Over {
		t.Errorf("%+v, %v", r, err)
	}
	if r := b.do(scriptTask("full", "answer")); codeOf(r) != "disk_full" {
		t.Errorf("%+v", r)
	}
	b.nothingLeft()
}

// A proxy that is gone while an agent works is the agent's failure, and the run is
// over all the same.
func TestRunProxyDown(t *testing.T) {
	s := newSite(t)
	withLiteLLM(t, s)
	b := openBureau(s, execute.Options{})
	down := make(chan error, 1)
	watch := func(e run.Event) {
		if e.Step == run.Executing {
			down <- b.runs.Close()
		}
	}
	task := scriptTask("down", "sleep 1; "+strings.ReplaceAll(askOnce, "-qO", "-T 5 -O")+" || exit 7")
	r, err := b.runs.Do(t.Context(), task, watch)
	if err != nil || r.Step != run.Over || codeOf(r) != "agent_failed" || !strings.Contains(r.Error.Message, "code 7") || r.Bill.Calls != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if err := <-down; err != nil {
		t.Error(err)
	}
	b.nothingLeft()
}

// Two who ask for the same run get the same result, and it is carried out once.
func TestRunTwice(t *testing.T) {
	s := newSite(t)
	both := []*bureau{openBureau(s, execute.Options{}), openBureau(s, execute.Options{})}
	seen := filepath.Join(s.agent, "AGENTS.md")
	s.write(seen, "one")
	var wait sync.WaitGroup
	for _, b := range both {
		wait.Go(func() {
			r, err := b.runs.Do(t.Context(), scriptTask("same", "sleep 1; answer"), nil)
			if err != nil || r.Text != "done" {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
	wait.Wait()
	events, err := both[0].app.Models.RunStore().Events(t.Context(), "same", 0)
	if err != nil {
		t.Fatal(err)
	}
	executed := 0
	for _, e := range events {
		if e.Step == run.Executing {
			executed++
		}
	}
	if executed != 1 {
		t.Errorf("carried out %d times", executed)
	}
	both[0].nothingLeft()
}

// askOnce has a script ask the model once.
const askOnce = `wget -qO /tmp/a --header 'Content-Type: application/json' --post-data '{"model":"m","messages":[{"role":"user","content":"hi"}]}' http://127.0.0.1:8080/v1/chat/completions && answer`

// withLiteLLM gives an installation a scripted LiteLLM.
func withLiteLLM(t *testing.T, s *site) *scripted.Server {
	t.Helper()
	upstream, err := scripted.Listen(t.Context(), "tcp", "127.0.0.1:0", scripted.Options{MasterKey: masterKey,
		Models: map[string]scripted.Model{"m": {Input: 1e-06, Output: 1e-05, Answer: "one two three"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = upstream.Close() })
	s.env["LITELLM_MASTER_KEY"] = masterKey
	s.set("llm.providers.litellm.url", upstream.URL())
	s.set("llm.providers.litellm.keys", []any{map[string]any{"env": "LITELLM_MASTER_KEY"}})
	s.set("agents.defaults.model", "litellm/m")
	return upstream
}

// A run's bill is LiteLLM's, and a budget ends what asks for more.
func TestRunBill(t *testing.T) {
	s := newSite(t)
	upstream := withLiteLLM(t, s)
	b := openBureau(s, execute.Options{})
	r := b.do(scriptTask("billed", askOnce))
	truth := int64(0)
	for _, row := range upstream.Rows() {
		truth += int64(row.Spend*1e6 + .5)
	}
	if r.Text != "done" || r.Bill.Calls != 1 || r.Bill.Provisional || r.Bill.Source != "litellm" || r.Bill.MicroUSD != truth || truth == 0 {
		t.Errorf("%+v, %+v; LiteLLM says %d", r.Bill, r.Error, truth)
	}
	poor := scriptTask("poor", "wget -S -qO- --header 'Content-Type: application/json' --post-data '{\"model\":\"m\",\"messages\":[]}' http://127.0.0.1:8080/v1/chat/completions; exit 1")
	poor.Budget.MicroUSD = 1
	if r := b.do(poor); codeOf(r) != "agent_failed" || r.Bill.MicroUSD != 0 || !strings.Contains(r.Error.Message, "429") && !strings.Contains(r.Error.Message, "402") {
		t.Errorf("%+v, %+v", r.Bill, r.Error)
	}
	b.nothingLeft()
}

// A process that dies at any step leaves a run that the next one ends, with its
// receipt, and nothing of its sandbox.
func TestRunsOfTheDead(t *testing.T) {
	s := newSite(t)
	withLiteLLM(t, s)
	for _, at := range []run.Step{run.Preparing, run.Executing, run.Answered, run.Settled, run.Finished} {
		id := "died-" + string(at)
		dying := openBureau(s, execute.Options{Checkpoint: dieAt(at)})
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			_, _ = dying.runs.Do(context.WithoutCancel(t.Context()), scriptTask(id, askOnce), nil)
		}()
		<-gone
		dying.app.Manager.Close() // what a process holds is gone with it
		next := openBureau(s, execute.Options{})
		next.runs.RecoverRuns(t.Context())
		r, err := next.app.Models.RunStore().Get(t.Context(), id)
		if err != nil || r.Step != run.Over {
			t.Fatalf("%s: %+v, %v", at, r, err)
		}
		answered := at == run.Settled || at == run.Finished
		if answered != (r.Error == nil) || !answered && codeOf(r) != "interrupted" {
			t.Errorf("%s: %+v", at, r.Error)
		}
		if asked := at != run.Preparing && at != run.Executing; asked != (r.Bill.MicroUSD > 0) {
			t.Errorf("%s: bill %+v", at, r.Bill)
		}
		next.nothingLeft()
	}
}

// Two runs at a time, fair, and each with a sandbox of its own.
func TestManyRuns(t *testing.T) {
	b := newBureau(t, execute.Options{AtOnce: 2})
	var wait sync.WaitGroup
	for i := range 5 {
		wait.Go(func() {
			task := scriptTask(fmt.Sprintf("many-%d", i), "test ! -e mine && touch mine && answer")
			task.Account = fmt.Sprintf("account-%d", i%2)
			if r, err := b.runs.Do(t.Context(), task, nil); err != nil || r.Text != "done" {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
	wait.Wait()
	b.nothingLeft()
}
