package app_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/agent"
	"github.com/atoll-run/atoll/internal/agent/host"
	"github.com/atoll-run/atoll/internal/fakellm"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

const (
	completionsAPI = "openai-completions"
	messagesAPI    = "anthropic-messages"
)

// streams answers every request with the same bytes of an event stream.
func streams(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, body)
	}
}

// silent answers nothing while the caller is there.
func silent(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	<-r.Context().Done()
}

// chunk is one piece of a streamed answer.
func chunk(text string) string {
	return fmt.Sprintf("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q},\"finish_reason\":null}]}\n\n", text)
}

// fault is something that goes wrong in a run, and how the run must end.
type fault struct {
	name  string
	set   func(*site)
	with  host.Options
	code  string // "" if the agent gets over it
	tool  string // what a tool must have answered
	calls int64  // requests in the receipt, at least
}

func faults() []fault {
	use := func(name, args string) fakellm.Turn { return fakellm.Use(name, args) }
	play := func(turns ...fakellm.Turn) func(*site) {
		return func(s *site) { s.play(completionsAPI, turns...) }
	}
	forever := make(fakellm.Script, 50)
	for i := range forever {
		forever[i] = use("exec", `{"command": "true"}`)
	}
	megabytes := chunk(strings.Repeat("x", 64<<10))
	return []fault{
		{name: "streams garbage", set: func(s *site) { s.upstream(streams("data: <html>oops\n\ndata: \x00\xff{{\n\n")) }, code: "model_bad_answer", calls: 1},
		{name: "is no stream at all", set: func(s *site) {
			s.upstream(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })
		}, code: "model_bad_answer", calls: 1},
		{name: "stops in the middle", set: play(fakellm.Turn{Text: "and then I", Cut: 2}), code: "model_answer_cut", calls: 3},
		{name: "stops in the middle, once", set: play(fakellm.Turn{Text: "done", First: []fakellm.Turn{{Text: "and then I", Cut: 2}}}), calls: 2},
		{name: "stops in the middle, in Messages", set: func(s *site) { s.play(messagesAPI, fakellm.Turn{Text: "and then I", Cut: 3}) }, code: "model_answer_cut", calls: 3},
		{name: "calls unknown tools", set: play(use("fly", `{}`), fakellm.Say("then not")), tool: "no such tool", calls: 2},
		{name: "gives broken arguments", set: play(use("exec", `{"command": `), fakellm.Say("then not")), tool: "arguments", calls: 2},
		{name: "gives wrong arguments", set: play(use("read", `{"file": 7}`), fakellm.Say("then not")), tool: `"/file" is not known`, calls: 2},
		{name: "loops for ever", set: play(forever...), with: host.Options{Limits: agent.Limits{Turns: 4}}, code: agent.CodeTurns, calls: 4},
		{name: "reads and reads", set: play(forever...), with: host.Options{Limits: agent.Limits{Tokens: 5000}}, code: agent.CodeTokens, calls: 1},
		{name: "answers with 10 MB", set: func(s *site) { s.upstream(streams(strings.Repeat(megabytes, 160))) }, code: "model_answer_large", calls: 1},
		{name: "one event of 10 MB", set: func(s *site) { s.upstream(streams(chunk(strings.Repeat("x", 10<<20)))) },
			with: host.Options{Limits: agent.Limits{Tries: 1}}, code: "model_answer_cut", calls: 1}, // the proxy breaks it off
		{name: "is out of money in the middle", set: func(s *site) { s.upstream(streams(strings.Repeat(chunk(strings.Repeat("word ", 40)), 2000))) },
			with: budgetOf(20_000), code: "budget_exceeded", calls: 1},
		{name: "is out of money before", set: play(fakellm.Say("x")), with: budgetOf(1), code: "budget_exceeded"},
		{name: "is not there", set: func(s *site) {
			s.provider("p", completionsAPI, "http://127.0.0.1:1/v1", nil)
			s.set("agents.defaults.model", "p/m-p")
		}, code: "model_unavailable"},
		{name: "says that the key is wrong", set: play(fakellm.Turn{Status: 401, Text: "who are you?"}), code: "model_unauthorized"},
		{name: "says that it is too long", set: play(fakellm.Turn{Status: 400, Text: "maximum context length is 4096 tokens"}), code: "context_overflow"},
		{name: "is silent", set: func(s *site) { s.upstream(silent) },
			with: host.Options{Limits: agent.Limits{Time: 300 * time.Millisecond}}, code: agent.CodeTime},
	}
}

func budgetOf(micro int64) (o host.Options) {
	o.Budget.MicroUSD = micro
	return o
}

// Whatever a model does, the run ends with a code, its receipt is kept, and the
// next message of the session finds the conversation whole.
func TestFaultsOfModels(t *testing.T) {
	t.Parallel()
	for _, f := range faults() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			s := linuxSite(t)
			f.set(s)
			f.with.Limits.Pause = time.Millisecond
			e := s.send(t.Context(), f.with)
			e.check(t, &f)
			if err := e.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			s.goesOn()
		})
	}
}

func (e *errand) check(t *testing.T, f *fault) {
	t.Helper()
	code := ""
	if e.err != nil {
		code = agent.CodeOf(e.err)
	}
	if code != f.code || (e.err != nil && strings.TrimSpace(e.err.Error()) == "") {
		t.Errorf("ended with %q (%v), want %q", code, e.err, f.code)
	}
	if got := strings.Join(e.results(), "\n"); !strings.Contains(got, f.tool) {
		t.Errorf("the tools answered %q, want %q", got, f.tool)
	}
	if bill := e.bill(t); bill.Calls < f.calls {
		t.Errorf("the receipt has %+v, want %d calls at least", bill, f.calls)
	}
	if strings.Contains(fmt.Sprint(e.err, e.events), modelKey) {
		t.Error("the key was shown")
	}
}

// goesOn gives the session another task, with a model that works.
func (s *site) goesOn() {
	s.t.Helper()
	server := s.play(completionsAPI, fakellm.Say("as before"))
	server.BeginAnew()
	e := s.send(s.t.Context(), host.Options{})
	if e.err != nil {
		s.t.Errorf("the session does not go on: %v (%v)", e.err, server.Err())
	}
}

// Cancelling ends what the agent's tools run in the sandbox, and what that has
// started, and says so in the transcript.
func TestFaultCancelled(t *testing.T) {
	t.Parallel()
	mark := "987" + fmt.Sprint(time.Now().UnixNano())
	s := linuxSite(t)
	s.play(completionsAPI, fakellm.Use("exec", `{"command": "(sleep `+mark+` &) ; sleep `+mark+`"}`), fakellm.Say("never"))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		soon(func() bool { return len(processes(t, "sleep\x00"+mark)) == 2 })
	}()
	e := s.send(ctx, host.Options{})
	if agent.CodeOf(e.err) != agent.CodeStopped {
		t.Errorf("ended with %v", e.err)
	}
	if !soon(func() bool { return len(processes(t, "sleep\x00"+mark)) == 0 }) {
		t.Errorf("still there: %v", processes(t, mark))
	}
	if bill := e.bill(t); bill.Calls != 1 {
		t.Errorf("the receipt has %+v", bill)
	}
}

// A transcript that cannot be written ends the run before the call it was to
// record.
func TestFaultDiskFull(t *testing.T) {
	t.Parallel()
	need.Root(t, "it mounts a file system")
	s := linuxSite(t)
	long := rand.Text() + strings.Repeat("x", 200<<10)
	s.play(completionsAPI, fakellm.Use("exec", `{"command": "touch called; echo `+long+`"}`), fakellm.Say("never"))
	sessions := filepath.Join(s.state, "agents", "main", "sessions")
	s.mkdir(sessions)
	if err := unix.Mount("tmpfs", sessions, "tmpfs", 0, "size=64k,mode=0700"); err != nil {
		t.Fatalf("mount a tmpfs: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(sessions, unix.MNT_DETACH) })
	e := s.send(t.Context(), host.Options{})
	if agent.CodeOf(e.err) != agent.CodeRecord || !strings.Contains(e.err.Error(), "no space left") {
		t.Errorf("ended with %v", e.err)
	}
	if len(e.results()) != 0 {
		t.Error("the call was carried out without a record")
	}
	if bill := e.bill(t); bill.Calls != 1 {
		t.Errorf("the receipt has %+v", bill)
	}
}
