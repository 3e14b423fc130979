package app_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/host"
	"github.com/atoll-run/atoll/internal/app"
	egress "github.com/atoll-run/atoll/internal/egress/service"
	"github.com/atoll-run/atoll/internal/fakellm"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/run/execute"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/testkit/internettest"
)

// endless answers /endless until the other end breaks the connection off, which ended is
// told, and everything else with a line.
type endless struct{ begun, ended chan struct{} }

func newEndless() endless { return endless{make(chan struct{}, 8), make(chan struct{}, 8)} }

func (e endless) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintln(w, "GET", r.Host+r.URL.Path)
	if r.URL.Path != "/endless" {
		return
	}
	_ = http.NewResponseController(w).Flush()
	e.begun <- struct{}{}
	<-r.Context().Done()
	e.ended <- struct{}{}
}

// drain forgets what a test that failed has left.
func (e endless) drain() {
	for len(e.begun)+len(e.ended) > 0 {
		select {
		case <-e.begun:
		case <-e.ended:
		}
	}
}

// allowInFile writes the names that the configuration allows.
func (s *egressSite) allowInFile(rules ...string) {
	s.set("agents.defaults.sandbox.egress.mode", "enforce")
	s.set("agents.defaults.sandbox.egress.allow", rules)
	s.configFile()
}

// transfer starts a program under a grant that reads an endless page of a name.
func (s *egressSite) transfer(t *testing.T, grant string, from endless) (id string) {
	t.Helper()
	id, err := s.box.Machine.Start(t.Context(), &machine.Command{
		Argv: []string{"wget", "-q", "-O", "-", "http://shop.example/endless"}, Grant: grant, Env: []string{"PATH=" + provide.DefaultPath},
	})
	if err != nil {
		t.Fatal(err)
	}
	await(t, from.begun, "the transfer")
	return id
}

func await(t *testing.T, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal(what + " did not come")
	}
}

// TestAttack23 takes a rule out of the configuration file during a transfer, and the
// sandbox away during another: both end. What the file has then counts for the
// commands that run.
func TestAttack23(t *testing.T) {
	from := newEndless()
	onBackends(t, from, func(t *testing.T, s *egressSite) {
		t.Cleanup(from.drain)
		s.allowInFile("shop.example:80", "other.example:80")
		e, err := s.app.Egress.Open(t.Context(), s.box.Handle, s.box.Plan, egress.Options{Config: egress.Of(policy.HalfIsolated)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = e.Close() })
		s.removeRule(t, e, from)
		s.allowInFile("shop.example:80")
		for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
			if _, code := s.sh(t, e.GrantID(), fetch); code == 0 {
				break
			}
			if time.Now().After(end) {
				t.Fatal("a rule that was added does not count")
			}
		}
		s.transfer(t, e.GrantID(), from)
		if err := s.app.Manager.ForceRemove(t.Context(), s.box.Name); err != nil {
			t.Fatal(err)
		}
		await(t, from.ended, "the end of the transfer of a sandbox that was removed")
		s.box.Release()
		if s.box, err = s.app.Provide(t.Context(), session("egress"), provide.Options{}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.box.Exec(t.Context(), &machine.Command{Argv: []string{"/bin/sh", "-c", fetch}, Grant: e.GrantID()}); err == nil {
			t.Error("the grant of the sandbox before is open in the new one")
		}
	})
}

// removeRule removes the rule of a transfer.
func (s *egressSite) removeRule(t *testing.T, e *egress.Egress, from endless) {
	t.Helper()
	id := s.transfer(t, e.GrantID(), from)
	begin := time.Now()
	s.allowInFile("other.example:80")
	await(t, from.ended, "the end of the transfer")
	t.Logf("the connection ended %v after the file was written", time.Since(begin))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if result, err := s.box.Machine.Wait(ctx, id); err != nil || result.ExitCode == 0 {
		t.Errorf("the program took it for the end of the page: %+v, %v", result, err)
	}
	if denied := strings.Join(e.Denials(id), "\n"); !strings.Contains(denied, "shop.example:80 denied: the rules changed while it was open: no rule allows shop.example") {
		t.Errorf("denials: %q", denied)
	}
	if out, code := s.sh(t, e.GrantID(), fetch); code == 0 {
		t.Errorf("reached without a rule: %s", out)
	}
	if out, code := s.sh(t, e.GrantID(), "wget -q -O - http://other.example/page"); code != 0 {
		t.Errorf("code %d: %s", code, out)
	}
}

// worker makes an agent ready in the sandbox of the site, in an app of its own.
func (s *egressSite) worker(t *testing.T, a *app.App) *host.Worker {
	t.Helper()
	w, err := a.Agents.NewWorker(t.Context(), host.Options{Who: session("egress")})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// call calls a tool of an agent.
func call(t *testing.T, w *host.Worker, tool, arguments string) (text string, details map[string]any) {
	t.Helper()
	result, err := w.Box.Call(t.Context(), tool, jsontext.Value(arguments))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(result.Details)
	if err != nil || json.Unmarshal(raw, &details) != nil {
		t.Fatalf("details %v: %v", result.Details, err)
	}
	return result.Text, details
}

// TestEgressInTheBackground has an agent start commands in the background: they have
// egress when the agent is done too, what was denied is in the result of a poll, and they
// end with what serves them.
func TestEgressInTheBackground(t *testing.T) {
	from := newEndless()
	onBackends(t, from, func(t *testing.T, s *egressSite) {
		t.Cleanup(from.drain)
		s.play("openai-completions", fakellm.Turn{})
		s.env["MODEL_KEY"] = modelKey
		s.allowInFile("shop.example:80")
		a := s.open()
		w := s.worker(t, a)
		text, details := call(t, w, "exec", `{"command": "wget -q -O - http://other.example/; wget -q -O - http://shop.example/page", "background": true}`)
		if !strings.Contains(text, "it has egress") {
			t.Error(text)
		}
		text, details = call(t, w, "process", fmt.Sprintf(`{"action": "wait", "id": %q}`, details["id"]))
		if !strings.Contains(text, "GET shop.example/page") || !strings.Contains(text, "[egress: other.example:80 denied: no rule allows") {
			t.Error(text)
		}
		if denied, _ := details["egress"].([]any); len(denied) != 1 {
			t.Errorf("details %v", details)
		}
		_, details = call(t, w, "exec", `{"command": "wget -q -O - http://shop.example/endless", "background": true}`)
		await(t, from.begun, "the transfer")
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		w = s.worker(t, a)
		if text, _ = call(t, w, "process", fmt.Sprintf(`{"action": "poll", "id": %q}`, details["id"])); !strings.Contains(text, "[running]") || len(from.ended) > 0 {
			t.Errorf("after the agent was done: %s", text)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		a.Agents.Close()
		await(t, from.ended, "the end of the transfer")
	})
}

// TestEgressOfRuns has a run whose agent may reach one name: it does, and the names that
// were denied are in the receipt.
func TestEgressOfRuns(t *testing.T) {
	net, err := internettest.Start(newEndless())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = net.Close() })
	s := newSite(t)
	s.set("agents.defaults.sandbox.egress", map[string]any{"mode": "enforce", "allow": []string{"shop.example:80"}, "upstream": net.Proxy})
	b := openBureau(s, execute.Options{})
	r := b.do(scriptTask("egress-1", "wget -q -O - http://other.example/; wget -q -O - http://shop.example/page | grep -q 'GET shop' && answer"))
	if codeOf(r) != "" || !slices.Equal(net.Asked(), []string{"shop.example:80"}) {
		t.Errorf("%+v, asked for %v", r.Error, net.Asked())
	}
	if warned := strings.Join(r.Warnings, "\n"); !strings.Contains(warned, "egress: other.example:80 denied: no rule allows other.example") {
		t.Errorf("warnings: %q", warned)
	}
	b.nothingLeft()
}
