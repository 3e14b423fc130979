package app_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/agent/host"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/tool"
)

// pairSite is an installation whose sessions have two sandboxes.
func pairSite(t *testing.T) *site {
	s := newSite(t)
	s.set("agents.defaults.sandbox.networkAllow", []string{"web_fetch"})
	s.set("agents.defaults.sandbox.docker.network", "bridge")
	s.set("agents.defaults.sandbox.networkExecAllow", []string{"ifconfig *"})
	s.set("tools.sandbox.tools.alsoAllow", []string{"web_fetch"})
	return s
}

func callTool(t *testing.T, box *host.Toolbox, name, args string) *tool.Result {
	t.Helper()
	result, err := box.Call(t.Context(), name, jsontext.Value(args))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return result
}

// TestToolsOfAPair works in an image that has next to nothing: a shell of two
// megabytes, no Python, no curl.
func TestToolsOfAPair(t *testing.T) {
	s := pairSite(t)
	a := s.open()
	box, err := a.Agents.Tools(t.Context(), session("x"), false)
	if err != nil {
		t.Fatal(err)
	}
	defer box.Release()
	if n := len(s.ours()); n != 2 {
		t.Fatalf("%d sandboxes before the first call", n)
	}
	isolated := callTool(t, box, "exec", `{"command": "ifconfig -a; true"}`)
	networked := callTool(t, box, "exec", `{"command": "ifconfig -a"}`)
	if isolated.Where != "isolated" || strings.Contains(isolated.Text, "eth0") {
		t.Errorf("%s: %s", isolated.Where, isolated.Text)
	}
	if networked.Where != "networked" || !strings.Contains(networked.Text, "eth0") {
		t.Errorf("%s: %s", networked.Where, networked.Text)
	}
	for _, c := range []struct{ name, args string }{
		{"write", `{"path": "a/b", "content": "one\n"}`}, {"read", `{"path": "a/b"}`}, {"edit", `{"path": "a/b", "oldText": "one", "newText": "two"}`},
		{"ls", `{"path": "a"}`}, {"grep", `{"pattern": "two"}`},
	} {
		if r := callTool(t, box, c.name, c.args); r.IsError || r.Where != "isolated" {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
	// The guest itself is what reaches out, so a name is looked up all the same.
	fetched := callTool(t, box, "web_fetch", `{"url": "http://no-such-host.invalid/"}`)
	if !fetched.IsError || fetched.Where != "networked" || !strings.Contains(fetched.Text, "no-such-host.invalid") {
		t.Errorf("got %+v", fetched)
	}
}

// TestHalfAPair: if one half cannot be made there are no tools, in neither.
func TestHalfAPair(t *testing.T) {
	s := pairSite(t)
	s.set("agents.defaults.sandbox.docker.network", "atoll-no-such-network")
	a := s.open()
	box, err := a.Agents.Tools(t.Context(), session("x"), false)
	if err == nil {
		box.Release()
		t.Fatal("a session with half a pair got tools")
	}
	if _, ok := errors.AsType[*sandbox.ProvisionError](err); !ok {
		t.Errorf("got %v", err)
	}
	// Nobody uses what was made: it can be removed.
	p, err := a.Plan(session("x"))
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Discard(t.Context(), p); err != nil {
		t.Error(err)
	}
	if left := s.ours(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestFindAndAttach(t *testing.T) {
	s := pairSite(t)
	a := s.open()
	if handles, err := a.Attach(t.Context(), session("x")); err != nil || len(handles) != 0 {
		t.Errorf("attached to %d, %v", len(handles), err)
	}
	box, err := a.Agents.Tools(t.Context(), session("x"), false)
	if err != nil {
		t.Fatal(err)
	}
	defer box.Release()
	handles, err := s.open().Attach(t.Context(), session("x"))
	if err != nil || len(handles) != 2 {
		t.Fatalf("attached to %d, %v", len(handles), err)
	}
	for _, h := range handles {
		who, err := a.Find(t.Context(), h.Name)
		if err != nil || who.SessionKey != "agent:main:x" {
			t.Errorf("%s: %+v, %v", h.Name, who, err)
		}
		h.Release()
	}
	if who, err := a.Find(t.Context(), "agent:main:y"); err != nil || who.SessionKey != "agent:main:y" {
		t.Errorf("%+v, %v", who, err)
	}
}
