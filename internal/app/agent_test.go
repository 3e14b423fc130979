package app_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/agent/host"
	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/fakellm"
)

// Both protocols carry a whole task: words, a call with a result that the next
// turn depends on, and usage; through the proxy, which adds the key.
func TestProvidersEndToEnd(t *testing.T) {
	t.Parallel()
	for _, api := range []string{completionsAPI, messagesAPI} {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			s := linuxSite(t)
			model := s.play(api,
				fakellm.Turn{Text: "I look.", Calls: []fakellm.Call{{Name: "exec", Arguments: `{"command": "echo $((6*7))"}`}, {Name: "ls", Arguments: `{}`}}, Usage: fakellm.Usage{Prompt: 1000, Completion: 100}},
				fakellm.Turn{When: "42", Text: "It is 42.", Usage: fakellm.Usage{Prompt: 2000, Completion: 50}})
			e := s.send(t.Context(), host.Options{})
			if e.err != nil || e.out.Text != "It is 42." || e.out.Calls != 2 || e.out.Turns != 2 {
				t.Fatalf("%+v, %v (%v)", e.out, e.err, model.Err())
			}
			if e.out.Usage.Input != 3000 || e.out.Usage.Output != 150 || e.out.Model != "p/m-p" {
				t.Errorf("%s used %+v", e.out.Model, e.out.Usage)
			}
			if bill := e.bill(t); bill.Calls != 2 || bill.MicroUSD != 3000*1+150*5 {
				t.Errorf("the bill: %+v", bill)
			}
			for _, r := range model.Requests() {
				key := r.Header.Get("Authorization") + r.Header.Get("X-Api-Key")
				if !strings.Contains(key, modelKey) || bytes.Contains(r.Body, []byte(modelKey)) {
					t.Errorf("the key came as %q, or in the body", key)
				}
			}
		})
	}
}

// A model that cannot answer is replaced by the next; each is asked in its own
// protocol.
func TestFallbackToAnotherProvider(t *testing.T) {
	t.Parallel()
	s := linuxSite(t)
	second := s.play(messagesAPI, fakellm.Say("from the second"))
	s.provider("second", messagesAPI, second.BaseURL(), nil)
	s.provider("first", completionsAPI, "http://127.0.0.1:1/v1", nil)
	s.set("agents.defaults.model", map[string]any{"primary": "first/m-first", "fallbacks": []string{"second/m-second"}})
	o := host.Options{}
	o.Limits.Pause, o.Limits.Tries = 1, 1
	e := s.send(t.Context(), o)
	if e.err != nil || e.out.Model != "second/m-second" || e.out.Text != "from the second" {
		t.Errorf("%+v, %v", e.out, e.err)
	}
}

// The instructions come from the host's agent workspace, whatever the agent has
// written into its own copy; where it works on the workspace itself they are
// marked as what it can change.
func TestInstructions(t *testing.T) {
	t.Parallel()
	for _, access := range []string{"none", "ro", "rw"} {
		t.Run(access, func(t *testing.T) {
			t.Parallel()
			s := linuxSite(t)
			s.set("agents.defaults.sandbox.workspaceAccess", access)
			s.write(filepath.Join(s.agent, "AGENTS.md"), "the owner's rules")
			s.write(filepath.Join(s.agent, "BOOTSTRAP.md"), "say who you are")
			s.write(filepath.Join(s.agent, "HEARTBEAT.md"), "say HEARTBEAT_OK")
			s.write(filepath.Join(s.agent, "SOUL.md"), strings.Repeat("x", 2<<20+1))
			s.write(filepath.Join(s.agent, "skills", "paint", "SKILL.md"), "how to paint")
			s.play(completionsAPI, fakellm.Use("exec", `{"command": "echo planted words >AGENTS.md; echo planted words >MEMORY.md; true"}`), fakellm.Say("done"))
			if first := s.send(t.Context(), host.Options{}); first.err != nil || first.Close() != nil {
				t.Fatal(first.err)
			}
			model := s.play(completionsAPI, fakellm.Say("a"), fakellm.Say("b"), fakellm.Say("c"))
			e := s.send(t.Context(), host.Options{})
			if e.err != nil {
				t.Fatal(e.err, model.Err())
			}
			checkInstructions(t, e.System, access == "rw")
			if !strings.Contains(strings.Join(e.Notices, "\n"), "SOUL.md was not read") {
				t.Errorf("notices %v", e.Notices)
			}
		})
	}
}

func checkInstructions(t *testing.T, system string, isOwn bool) {
	t.Helper()
	want := map[string]bool{
		"the owner's rules": !isOwn, "planted words": isOwn, "you can change this file yourself": isOwn, "You can change these files yourself": isOwn,
		"written by your owner": !isOwn, "say who you are": false, "HEARTBEAT_OK": false, "how to paint": true,
		"There is no network": true, "No credential": true, "xxxx": false,
	}
	for text, is := range want {
		if strings.Contains(system, text) != is {
			t.Errorf("%q in the instructions: %v, want %v", text, !is, is)
		}
	}
}

// A process that is killed in the middle of a call leaves a conversation that
// goes on: the call was carried out once, and the model hears that it was
// interrupted. What it ran is the guest's to end, when its host has been gone for
// a minute.
func TestResumeAfterKill(t *testing.T) {
	t.Parallel()
	s := linuxSite(t)
	mark := fmt.Sprint("77", os.Getpid(), "1234")
	s.play(completionsAPI, fakellm.Use("exec", `{"command": "echo once >>count; sleep `+mark+`"}`), fakellm.Turn{When: "Interrupted", Text: "I was interrupted."})
	cmd := s.process(order{Agent: "do it"})
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if !soon(func() bool { return len(processes(t, "sleep\x00"+mark)) > 0 }) {
		t.Error("the call did not begin")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	e := s.send(t.Context(), host.Options{})
	if e.err != nil || e.out.Text != "I was interrupted." {
		t.Fatalf("%+v, %v", e.out, e.err)
	}
	got, err := e.Box.Call(t.Context(), "read", []byte(`{"path": "count"}`))
	if err != nil || strings.Count(got.Text, "once") != 1 {
		t.Errorf("%v, %v", got, err)
	}
}

// work gives an agent a task in this process.
func (o *order) work(ctx context.Context, a *app.App) error {
	w, err := a.Agents.NewWorker(ctx, host.Options{Run: o.Run, Branch: o.Branch})
	if err != nil {
		return err
	}
	out, err := w.Agent.Run(ctx, o.Agent)
	_, undelivered := w.Deliver(ctx, out, err)
	return errors.Join(err, undelivered, w.Close())
}

// A process that is about to read keys can close itself first, and by then has
// the sandbox that it could not make afterwards.
func TestAgentIsAskedBeforeKeysAreRead(t *testing.T) {
	t.Parallel()
	s := linuxSite(t)
	s.play(completionsAPI, fakellm.Say("done"))
	delete(s.env, "MODEL_KEY") // reading it would fail otherwise
	a := s.open()
	closed := errors.New("the endpoint is closed")
	_, err := a.Agents.NewWorker(t.Context(), host.Options{BeforeKeys: func() error {
		if rows := s.rows(a); len(rows) != 1 {
			t.Errorf("sandboxes: %v", rows)
		}
		return closed
	}})
	if !errors.Is(err, closed) {
		t.Errorf("%v", err)
	}
}
