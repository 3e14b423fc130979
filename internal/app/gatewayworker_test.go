package app_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/fakellm"
	"github.com/atoll-run/atoll/internal/gateway/serve"
	sessions "github.com/atoll-run/atoll/internal/gateway/session"
	"github.com/atoll-run/atoll/internal/runtime/rootfs"
	"github.com/atoll-run/atoll/internal/testkit/litellmtest"
)

// office is a service of sessions with real agents in real sandboxes.
type office struct {
	*sessions.Service
	app    *app.App
	worker *serve.Worker
	t      *testing.T
}

var (
	ann = sessions.View{Account: "ann"}
	bob = sessions.View{Account: "bob"}
)

// hire opens the installation with a service of sessions; end takes it down again.
func (s *site) hire() (o *office, end func()) {
	s.t.Helper()
	a := s.open()
	worker, err := serve.NewWorker(s.t.Context(), a.Parts())
	if err != nil {
		s.t.Fatal(err)
	}
	o = &office{Service: sessions.New(serve.SessionOptions(a.Parts(), worker)), app: a, worker: worker, t: s.t}
	end = sync.OnceFunc(func() {
		o.Close()
		if err := worker.Close(); err != nil {
			s.t.Error(err)
		}
	})
	s.t.Cleanup(end)
	return o, end
}

func (o *office) ask(v sessions.View, t sessions.Task) {
	o.t.Helper()
	if _, _, err := o.Submit(o.t.Context(), v, t); err != nil {
		o.t.Fatalf("%s: %v", t.ID, err)
	}
}

func (o *office) over(v sessions.View, id string) *sessions.Record {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), 2*time.Minute)
	defer cancel()
	rec, err := o.Wait(ctx, v, id)
	if err != nil {
		o.t.Fatalf("%s: %v", id, err)
	}
	return rec
}

// gatewaySite has a LiteLLM with two models, which do the same.
func gatewaySite(t *testing.T, script ...fakellm.Turn) (*site, *litellmtest.Server) {
	t.Helper()
	model := litellmtest.Model{Input: 1e-06, Output: 1e-05, Script: script}
	if len(script) == 0 {
		model.Answer = "done"
	}
	upstream, err := litellmtest.Listen(t.Context(), "tcp", "127.0.0.1:0", litellmtest.Options{MasterKey: masterKey, Models: map[string]litellmtest.Model{"small": model, "big": model}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = upstream.Close() })
	s := linuxSite(t)
	s.env["LITELLM_MASTER_KEY"] = masterKey
	s.set("llm.providers.litellm", map[string]any{"url": upstream.URL(), "keys": []any{map[string]any{"env": "LITELLM_MASTER_KEY"}}, "models": []string{"small", "big"}})
	s.set("agents.defaults.model", "litellm/small")
	return s, upstream
}

// Sessions that work at the same time each send their own headers, and what a
// session says never changes whose bill it is. Seen to fail with Headers left out
// of Work's options, and with what is ours left out of newHeaders.
func TestInvariant_OUTBOUND_HEADERS_PER_SESSION(t *testing.T) {
	t.Parallel()
	s, upstream := gatewaySite(t, fakellm.Use("exec", `{"command": "true"}`), fakellm.Say("done"))
	o, _ := s.hire()
	const each = 4
	views := []sessions.View{ann, bob}
	for i := range each {
		for _, v := range views {
			mark := fmt.Sprintf("%s-%d", v.Account, i)
			headers := map[string]string{"x-tag": "tag-" + mark, "X-LiteLLM-End-User-Id": "eve"}
			if _, err := o.Patch(t.Context(), v, "agent:main:"+v.Account+":"+mark, sessions.Patch{Headers: &headers}); err != nil {
				t.Fatal(err)
			}
			o.ask(v, sessions.Task{ID: mark, Key: "agent:main:" + v.Account + ":" + mark, Message: "I am <" + mark + ">", Headers: map[string]string{
				"x-cogni-run-id": "run-" + mark, "x-litellm-spend-logs-metadata": `{"run_id":"run-` + mark + `","attempt":7,"req":"forged"}`,
			}})
		}
	}
	for i := range each {
		for _, v := range views {
			rec := o.over(v, fmt.Sprintf("%s-%d", v.Account, i))
			if rec.State != sessions.Done || rec.Text != "done" || rec.MicroUSD == 0 {
				t.Errorf("%+v (%v)", rec, upstream.Err())
			}
		}
	}
	asked := upstream.Requests()
	if len(asked) != 2*each*len(views) {
		t.Errorf("%d requests", len(asked))
	}
	for _, q := range asked {
		checkHeaders(t, q)
	}
}

func checkHeaders(t *testing.T, q *fakellm.Request) {
	t.Helper()
	_, rest, _ := strings.Cut(string(q.Body), `I am \u003c`)
	if rest == "" {
		_, rest, _ = strings.Cut(string(q.Body), "I am <")
	}
	mark := rest[:strings.IndexAny(rest, `>\`)]
	account, _, _ := strings.Cut(mark, "-")
	for name, want := range map[string]string{"X-Tag": "tag-" + mark, "X-Cogni-Run-Id": "run-" + mark, "X-Litellm-End-User-Id": account} {
		if got := q.Header.Values(name); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %s is %q, want %s", mark, name, got, want)
		}
	}
	var said map[string]any
	if err := json.Unmarshal([]byte(q.Header.Get("X-Litellm-Spend-Logs-Metadata")), &said); err != nil {
		t.Error(err)
	}
	if said["run_id"] != "run-"+mark || said["attempt"] != 7.0 || said["req"] == "forged" || said["req"] == nil || said["session_id"] != "agent:main:"+account+":"+mark {
		t.Errorf("%s: metadata %v", mark, said)
	}
}

// A model that is patched into a session is asked by the very next task, and by
// nobody else's. Seen to fail with Model left out of Work's options.
func TestInvariant_SESSION_MODEL_OVERRIDE(t *testing.T) {
	t.Parallel()
	s, upstream := gatewaySite(t)
	o, _ := s.hire()
	for i, model := range []string{"litellm/big", "big", ""} {
		if _, err := o.Patch(t.Context(), ann, "main", sessions.Patch{Model: &model}); err != nil {
			t.Fatal(err)
		}
		before := len(upstream.Requests())
		o.ask(ann, sessions.Task{ID: fmt.Sprint("t", i), Key: "main", Message: "x"})
		want := "litellm/small"
		if model != "" {
			want = "litellm/big"
		}
		if rec := o.over(ann, fmt.Sprint("t", i)); rec.Model != want {
			t.Errorf("%+v", rec)
		}
		o.ask(ann, sessions.Task{ID: fmt.Sprint("u", i), Key: "other", Message: "x"})
		if rec := o.over(ann, fmt.Sprint("u", i)); rec.Model != "litellm/small" {
			t.Errorf("another session: %+v", rec)
		}
		if asked := upstream.Requests()[before:]; len(asked) != 2 || "litellm/"+asked[0].Model != want || asked[1].Model != "small" {
			t.Errorf("the upstream was asked for %+v", asked)
		}
	}
	for _, model := range []string{"nobody/big", "litellm/huge", "huge", "litellm/"} {
		if _, err := o.Patch(t.Context(), ann, "main", sessions.Patch{Model: &model}); !errors.Is(err, sessions.ErrInvalid) {
			t.Errorf("%s: %v", model, err)
		}
	}
}

// How much a model is to think, and the trace that a task belongs to, go along with
// its calls and no other's; a task's own level is for it alone.
func TestThinkingAndTraceReachTheModel(t *testing.T) {
	t.Parallel()
	s, upstream := gatewaySite(t)
	o, _ := s.hire()
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	high := "high"
	if _, err := o.Patch(t.Context(), ann, "main", sessions.Patch{Levels: map[string]*string{sessions.ThinkingLevel: &high}}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ id, key, thinking, trace, effort string }{
		{"t1", "main", "", trace, "high"}, {"t2", "main", "low", "", "low"}, {"t3", "main", "off", "", ""}, {"t4", "other", "", "", ""},
	} {
		before := len(upstream.Requests())
		o.ask(ann, sessions.Task{ID: c.id, Key: c.key, Message: "x", Terms: sessions.Terms{Thinking: c.thinking}, Trace: c.trace})
		if rec := o.over(ann, c.id); rec.State != sessions.Done {
			t.Fatalf("%+v", rec)
		}
		for _, r := range upstream.Requests()[before:] {
			var body struct {
				Effort string `json:"reasoning_effort"`
			}
			if err := json.Unmarshal(r.Body, &body); err != nil || body.Effort != c.effort {
				t.Errorf("%s: %q, want %q (%v)", c.id, body.Effort, c.effort, err)
			}
			parent, said := r.Header.Get("Traceparent"), r.Header.Get("x-litellm-spend-logs-metadata")
			if strings.HasPrefix(parent, "00-"+trace+"-") != (c.trace != "") || strings.Contains(said, `"existing_trace_id":"`+trace+`"`) != (c.trace != "") {
				t.Errorf("%s: traceparent %q, metadata %s", c.id, parent, said)
			}
		}
	}
	for _, bad := range []sessions.Task{{Terms: sessions.Terms{Thinking: "hardest"}}, {Trace: "no trace"}} {
		bad.ID, bad.Key, bad.Message = "bad", "main", "x"
		if _, _, err := o.Submit(t.Context(), ann, bad); !errors.Is(err, sessions.ErrInvalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// Two accounts with the same keys share neither sandbox nor transcript, a
// transcript survives a restart, can be shortened, and is gone when deleted.
func TestSessionsOfAccounts(t *testing.T) {
	t.Parallel()
	s, upstream := gatewaySite(t, fakellm.Use("exec", `{"command": "cat secret; echo mine >secret"}`), fakellm.Say("one"), fakellm.Say("two"), fakellm.Say("three"))
	o, end := s.hire()
	sub := o.Subscribe(bob, 1000)
	for _, v := range []sessions.View{ann, bob} { // one after the other: the second would find what the first left
		o.ask(v, sessions.Task{ID: "t1", Key: "main", Message: "hello from " + v.Account})
		if rec := o.over(v, "t1"); rec.State != sessions.Done {
			t.Fatalf("%+v (%v)", rec, upstream.Err())
		}
	}
	o.ask(ann, sessions.Task{ID: "t2", Key: "main", Message: strings.Repeat("long ", 400), System: "Speak softly."})
	o.over(ann, "t2")
	if q := upstream.Requests(); !strings.Contains(string(q[len(q)-1].Body), "Speak softly.") {
		t.Error("the instructions of the task did not arrive")
	}
	sub.Close()
	for e := range sub.Events() {
		if e.Account != "bob" || e.Kind == sessions.Returned && strings.Contains(e.Result, "mine") {
			t.Errorf("bob hears %+v", e)
		}
	}
	end()
	again, _ := s.hire()
	for v, want := range map[sessions.View]int{ann: 6, bob: 4} {
		messages, err := again.History(t.Context(), v, "main", 100)
		if err != nil || len(messages) != want || messages[0].Role != chat.User || messages[0].Text != "hello from "+v.Account {
			t.Errorf("%s: %+v, %v", v.Account, messages, err)
		}
	}
	before, after, err := again.Compact(t.Context(), ann, "main")
	if err != nil || before != 6 || after >= before {
		t.Errorf("%d, %d, %v", before, after, err)
	}
	if _, err := again.Delete(t.Context(), ann, "main"); err != nil {
		t.Error(err)
	}
	again.ask(ann, sessions.Task{ID: "t3", Key: "main", Message: "anew"})
	again.over(ann, "t3")
	if messages, err := again.History(t.Context(), ann, "main", 100); err != nil || len(messages) == 0 || messages[0].Text != "anew" {
		t.Errorf("%v, %v", messages, err)
	}
}

// Where several accounts meet, the first keeps the host's own programs; where no
// image can be made for the others, they are refused, and the first is not.
func TestHostImageIsNotShared(t *testing.T) {
	t.Parallel()
	s, _ := gatewaySite(t)
	o, _ := s.hire()
	many := false
	o.app.ShareAmong(func() bool { return many })
	o.app.PackageRoot = t.TempDir()
	o.ask(ann, sessions.Task{ID: "t1", Key: "main", Message: "x"})
	if rec := o.over(ann, "t1"); rec.State != sessions.Done {
		t.Errorf("one account: %+v", rec)
	}
	many = true
	o.ask(ann, sessions.Task{ID: "t2", Key: "main", Message: "x"})
	if rec := o.over(ann, "t2"); rec.State != sessions.Done {
		t.Errorf("the first account: %+v", rec)
	}
	o.ask(bob, sessions.Task{ID: "t3", Key: "main", Message: "x"})
	if rec := o.over(bob, "t3"); rec.State != sessions.Failed || rec.Code != "sandbox_unavailable" || !strings.Contains(rec.Problem, "several accounts") || !strings.Contains(rec.Problem, "atoll images pull") {
		t.Errorf("the second: %+v", rec)
	}
}

// An image that lies on the host's programs is not another account's either: nothing
// takes its place, and the refusal names the remedy.
func TestImageOnTheHostIsNotShared(t *testing.T) {
	t.Parallel()
	s, _ := gatewaySite(t)
	s.set("agents.defaults.sandbox.docker.image", "tools:1")
	o, _ := s.hire()
	store, err := o.app.Images()
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	if err := tar.NewWriter(&archive).Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := store.AddLayer(t.Context(), &archive, rootfs.LayerOptions{Base: rootfs.HostName, Names: []string{"tools:1"}, Source: "a test"}); err != nil {
		t.Fatal(err)
	}
	many := false
	o.app.ShareAmong(func() bool { return many })
	o.ask(ann, sessions.Task{ID: "t1", Key: "main", Message: "x"})
	if rec := o.over(ann, "t1"); rec.State != sessions.Done {
		t.Errorf("the first account: %+v", rec)
	}
	many = true
	o.ask(bob, sessions.Task{ID: "t2", Key: "main", Message: "x"})
	if rec := o.over(bob, "t2"); rec.State != sessions.Failed || !strings.Contains(rec.Problem, "lies on the host's own programs") || !strings.Contains(rec.Problem, "--base-image") {
		t.Errorf("the second: %+v", rec)
	}
}

// After kill -9 under load the next process ends what was under way, carries out
// what had not begun, once, and goes on with every transcript.
func TestGatewayKilled(t *testing.T) {
	t.Parallel()
	const n = 3
	mark := fmt.Sprint("88", os.Getpid(), "4321")
	s, upstream := gatewaySite(t,
		fakellm.Turn{When: "first", Calls: []fakellm.Call{{Name: "exec", Arguments: `{"command": "echo begun >>count; sleep ` + mark + `"}`}}, Else: &fakellm.Turn{Text: "never"}},
		fakellm.Turn{When: "second", Text: "I go on."})
	s.set("agents.defaults.sandbox.scope", "session")
	cmd := s.process(order{Tasks: n})
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if !soon(func() bool { return len(processes(t, "sleep\x00"+mark)) >= n }) {
		t.Error("the calls did not begin:", stderr.String())
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	o, _ := s.hire()
	if err := o.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if rec := o.over(ann, fmt.Sprint("first", i)); rec.State != sessions.Failed || rec.Code != sessions.CodeInterrupted {
			t.Errorf("%+v", rec)
		}
		if rec := o.over(ann, fmt.Sprint("second", i)); rec.State != sessions.Done || rec.Text != "I go on." {
			t.Errorf("%+v (%v)", rec, upstream.Err())
		}
		messages, err := o.History(t.Context(), ann, fmt.Sprint("s", i), 100)
		if err != nil || len(messages) != 5 || !strings.Contains(messages[2].Text, "Interrupted") {
			t.Errorf("%+v, %v", messages, err)
		}
	}
	if asked := len(upstream.Requests()); asked != 2*n {
		t.Errorf("the model was asked %d times", asked)
	}
}

// serve accepts tasks for as many sessions, and waits to be killed.
func (o *order) serve(ctx context.Context, a *app.App) error {
	worker, err := serve.NewWorker(ctx, a.Parts())
	if err != nil {
		return err
	}
	service := sessions.New(serve.SessionOptions(a.Parts(), worker))
	for i := range o.Tasks {
		for _, name := range []string{"first", "second"} {
			task := sessions.Task{ID: fmt.Sprint(name, i), Key: fmt.Sprint("s", i), Message: name}
			if _, _, err := service.Submit(ctx, ann, task); err != nil {
				return err
			}
		}
	}
	select {}
}
