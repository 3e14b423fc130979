package app_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/atoll-run/atoll/internal/agent/host"
	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/fakellm"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// When the model is asked for its first word, the sandbox is there and answers;
// without one nobody is asked.
//
// Seen to fail with the sandbox removed again at the end of Worker.prepare.
func TestInvariant_READY_BEFORE_FIRST_TOKEN(t *testing.T) {
	t.Parallel()
	s := linuxSite(t)
	var asked atomic.Int32
	var a *app.App
	s.upstream(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			rows := s.rows(a)
			if len(rows) != 1 || rows[0].Phase != sandbox.PhaseReady {
				t.Errorf("the model is asked, and there is %+v", rows)
			}
		}
		streams(chunk("done")+"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")(w, r)
	})
	a = s.open()
	w, err := a.Agents.NewWorker(t.Context(), host.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if out, err := w.Agent.Run(t.Context(), "go"); err != nil || out.Text != "done" || asked.Load() != 1 {
		t.Fatalf("%+v, %v, asked %d times", out, err, asked.Load())
	}
	s.set("agents.defaults.sandbox.docker.network", "atoll-no-such-network")
	if w, err := s.open().Agents.NewWorker(t.Context(), host.Options{}); err == nil {
		_ = w.Close()
		t.Error("an agent without a sandbox")
	}
	if asked.Load() != 1 {
		t.Error("the model was asked although there is no sandbox")
	}
}

// Our own agent has no elevated mode: neither the configuration nor a call gets
// a tool out of its sandbox or past the lists.
//
// Seen to fail with a member "elevated" in the arguments of exec.
func TestInvariant_OPENCLAW_ELEVATED_DISABLED(t *testing.T) {
	t.Parallel()
	s := linuxSite(t)
	s.set("tools.elevated", map[string]any{"enabled": true, "allowFrom": map[string]any{"webchat": []string{"*"}}})
	s.set("agents.defaults.elevatedDefault", "full")
	s.set("tools.sandbox.tools.deny", []string{"write"})
	outside := filepath.Join(s.dir, canary)
	s.play(completionsAPI,
		fakellm.Turn{Calls: []fakellm.Call{
			{Name: "exec", Arguments: `{"command": "touch ` + outside + `", "elevated": true}`},
			{Name: "exec", Arguments: `{"command": "touch ` + outside + `", "host": "gateway"}`},
			{Name: "exec", Arguments: `{"command": "touch ` + outside + ` || true"}`},
			{Name: "write", Arguments: `{"path": "x", "content": "y"}`},
		}}, fakellm.Say("done"))
	e := s.send(t.Context(), host.Options{})
	results := e.results()
	if e.err != nil || len(results) != 4 {
		t.Fatalf("%v: %q", e.err, results)
	}
	for i, want := range []string{`"/elevated" is not known`, `"/host" is not known`, "", "write"} {
		if !strings.Contains(results[i], want) {
			t.Errorf("call %d: %q, want %q", i+1, results[i], want)
		}
	}
	if found := s.canaries(); len(found) > 0 {
		t.Errorf("on the host: %v", found)
	}
	if !e.Plan.Sandboxed || e.Box.Isolated.Host {
		t.Error("the tools work on the host")
	}
}

// An agent speaks when it is spoken to: there is no clock in it, and what an
// agent is to do at a heartbeat is not in its instructions.
//
// Seen to fail with HEARTBEAT.md in prompt.behaviour.
func TestInvariant_HEARTBEAT_DISABLED(t *testing.T) {
	t.Parallel()
	s := linuxSite(t)
	s.set("agents.defaults.heartbeat", map[string]any{"every": "1s"})
	s.write(filepath.Join(s.agent, "HEARTBEAT.md"), "At every beat answer HEARTBEAT_OK.")
	model := s.play(completionsAPI, fakellm.Say("done"))
	e := s.send(t.Context(), host.Options{})
	if e.err != nil || e.out.Text != "done" {
		t.Fatalf("%+v, %v", e.out, e.err)
	}
	requests := model.Requests()
	if len(requests) != 1 || strings.Contains(string(requests[0].Body), "HEARTBEAT") {
		t.Errorf("%d requests, the first: %.2000s", len(requests), requests[0].Body)
	}
}
