package rest_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/gateway/rest"
	"github.com/atoll-run/atoll/internal/model/usage"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// testSandboxes are a sandbox of each account.
type testSandboxes struct{}

func (testSandboxes) List(context.Context) ([]api.Sandbox, error) {
	return []api.Sandbox{{ContainerName: "box-alice", Account: "alice", WorkspaceDir: "/home/op/a"}, {ContainerName: "box-bob", Account: "bob", WorkspaceDir: "/home/op/b"}}, nil
}
func (testSandboxes) AddDrift(list []api.Sandbox) {
	for i := range list {
		list[i].Drift = &api.Drift{Modified: []string{"SOUL.md"}}
	}
}
func (s testSandboxes) Get(ctx context.Context, name string) (*api.Sandbox, error) {
	all, err := s.List(ctx)
	for i := range all {
		if all[i].ContainerName == name {
			return &all[i], nil
		}
	}
	return nil, errors.Join(err, sandbox.ErrNotFound)
}
func (testSandboxes) DriftDiffs(context.Context, string) (*api.DriftDiffs, error) {
	return &api.DriftDiffs{Files: []api.DriftDiff{{Path: "SOUL.md", Modified: true, Diff: "-a\n+b\n", Note: "open /home/op/a: denied"}}}, nil
}
func (testSandboxes) Recreate(_ context.Context, name string, discard bool) (*api.Recreated, error) {
	if name == "box-bob" {
		return nil, sandbox.ErrBusy
	}
	return &api.Recreated{ContainerName: name, Discarded: discard, Aside: "/home/op/aside"}, nil
}
func (testSandboxes) Prune(context.Context, bool) (*api.Pruned, error) {
	return &api.Pruned{Removed: []api.Removal{}}, nil
}
func (testSandboxes) Verify(context.Context, string) (*api.Verifications, error) {
	return &api.Verifications{Verified: []api.Verification{}}, nil
}
func (testSandboxes) Explain(_ context.Context, q *api.ExplainQuery) (*api.Explanation, error) {
	return &api.Explanation{AgentID: q.Agent, ScopeKey: q.Account}, nil
}

// testLedger has a run and a record of each account.
type testLedger struct{}

func (testLedger) Costs(context.Context, usage.Filter) ([]usage.RunCost, error) {
	return []usage.RunCost{{Run: "a", Account: "alice", Calls: 1, MicroUSD: 5}, {Run: "b", Account: "bob", Calls: 1, MicroUSD: 7}, {Run: "c", Account: "alice", Calls: 2, MicroUSD: 6}}, nil
}
func (testLedger) Calls(_ context.Context, f usage.Filter) ([]usage.Stored, error) {
	billed := int64(3)
	return []usage.Stored{{ID: "c1", Subject: usage.Subject{Run: f.Run, Account: "alice"}, Model: "m", Tokens: usage.Tokens{Input: 7}, Cost: 5, Billed: &billed}, {ID: "c2", Subject: usage.Subject{Run: f.Run, Account: "bob"}}}, nil
}
func (testLedger) Series(_ context.Context, f usage.Filter, by string, bucket time.Duration) ([]usage.Point, error) {
	if bucket == time.Hour {
		return nil, usage.ErrTooManyPoints
	}
	return []usage.Point{{At: f.Since, Key: by + " " + f.Account, MicroUSD: 5}}, nil
}
func (testLedger) VerifyAudit(context.Context) (*audit.Report, error) {
	return &audit.Report{Segments: 1, Records: 2, Problems: []audit.Problem{{Segment: "s", Line: 2, What: "it was changed"}}}, nil
}
func (testLedger) AuditTail(_ int, match func(string) bool) (list []audit.Entry, err error) {
	for _, line := range []string{`{"account":"alice","run":"a"}`, `{"account":"bob","run":"b","denied":"budget"}`} {
		if match(line) {
			list = append(list, audit.Entry{JSON: line})
		}
	}
	return list, nil
}

func TestSandboxesOfOthers(t *testing.T) {
	o := newServer(t, nil)
	mine := into[api.Sandboxes](t, o.ask("alice", http.MethodGet, "/api/v1/sandboxes", nil), http.StatusOK)
	if len(mine.Sandboxes) != 1 || mine.Total != 1 || mine.Sandboxes[0].ContainerName != "box-alice" || mine.Sandboxes[0].WorkspaceDir != "" {
		t.Errorf("%+v", mine)
	}
	for _, path := range []string{"", "/recreate", "/verify"} {
		method := http.MethodPost
		if path == "" {
			method = http.MethodGet
		}
		problem(t, o.ask("alice", method, "/api/v1/sandboxes/box-bob"+path, "{}"), http.StatusNotFound, "sandbox_not_found")
	}
	if mine.Sandboxes[0].Drift == nil {
		t.Error("the list has no drift")
	}
	if drift := into[api.DriftDiffs](t, o.ask("alice", http.MethodGet, "/api/v1/sandboxes/box-alice/drift", nil), http.StatusOK); len(drift.Files) != 1 || drift.Files[0].Diff == "" || strings.Contains(drift.Files[0].Note, "/home/op") {
		t.Errorf("%+v", drift)
	}
	problem(t, o.ask("alice", http.MethodGet, "/api/v1/sandboxes/box-bob/drift", nil), http.StatusNotFound, "sandbox_not_found")
	if done := into[api.Recreated](t, o.ask("alice", http.MethodPost, "/api/v1/sandboxes/box-alice/recreate", `{"discard":true}`), http.StatusOK); !done.Discarded || done.Aside != "" {
		t.Errorf("%+v", done)
	}
	problem(t, o.ask("root", http.MethodPost, "/api/v1/sandboxes/box-bob/recreate", "{}"), http.StatusConflict, "sandbox_busy")
	problem(t, o.ask("reader", http.MethodPost, "/api/v1/sandboxes/box-alice/recreate", "{}"), http.StatusForbidden, "forbidden")
	problem(t, o.ask("alice", http.MethodPost, "/api/v1/sandboxes/prune", "{}"), http.StatusForbidden, "bound_token")
	into[api.Pruned](t, o.ask("root", http.MethodPost, "/api/v1/sandboxes/prune", "{}"), http.StatusOK)
	if x := into[api.Explanation](t, o.ask("alice", http.MethodGet, "/api/v1/policy/explain?agent=main", nil), http.StatusOK); x.ScopeKey != "alice" {
		t.Errorf("%+v", x)
	}
	problem(t, o.ask("alice", http.MethodGet, "/api/v1/policy/explain?account=bob", nil), http.StatusForbidden, "other_account")
}

func TestBooksOfOthers(t *testing.T) {
	o := newServer(t, nil)
	mine := into[api.Costs](t, o.ask("alice", http.MethodGet, "/api/v1/costs", nil), http.StatusOK)
	if len(mine.Runs) != 2 || len(mine.Accounts) != 1 || mine.Accounts[0] != (api.AccountCost{Account: "alice", Runs: 2, Calls: 3, MicroUSD: 11}) {
		t.Errorf("%+v", mine)
	}
	if all := into[api.Costs](t, o.ask("root", http.MethodGet, "/api/v1/costs?since=2026-01-01T00:00:00Z", nil), http.StatusOK); len(all.Accounts) != 2 {
		t.Errorf("%+v", all)
	}
	problem(t, o.ask("root", http.MethodGet, "/api/v1/costs?since=yesterday", nil), http.StatusUnprocessableEntity, "invalid_request")
	problem(t, o.ask("alice", http.MethodGet, "/api/v1/audit?account=bob", nil), http.StatusForbidden, "other_account")
	if log := into[api.Audit](t, o.ask("alice", http.MethodGet, "/api/v1/audit", nil), http.StatusOK); len(log.Records) != 1 || strings.Contains(string(log.Records[0]), "bob") {
		t.Errorf("%s", log.Records)
	}
	if log := into[api.Audit](t, o.ask("root", http.MethodGet, "/api/v1/audit?denied=true", nil), http.StatusOK); len(log.Records) != 1 {
		t.Errorf("%s", log.Records)
	}
}

func TestHealth(t *testing.T) {
	sick := errors.New("the database at /home/op does not answer")
	o := newServer(t, func(o *rest.Options) { o.Version = "v1"; o.Ready = func(context.Context) error { return sick } })
	if h := into[api.Health](t, o.ask("", http.MethodGet, "/health", nil), http.StatusOK); !h.OK || h.Version != "v1" {
		t.Errorf("%+v", h)
	}
	if p := problem(t, o.ask("", http.MethodGet, "/ready", nil), http.StatusServiceUnavailable, "not_ready"); strings.Contains(p.Detail, "/home") {
		t.Error(p.Detail)
	}
	if p := problem(t, o.ask("root", http.MethodGet, "/ready", nil), http.StatusServiceUnavailable, "not_ready"); !strings.Contains(p.Detail, "/home") {
		t.Error(p.Detail)
	}
	problem(t, o.ask("alice", http.MethodGet, "/metrics", nil), http.StatusForbidden, "bound_token")
	if a := o.ask("root", http.MethodGet, "/metrics", nil); !strings.Contains(string(a.body), `atoll_gateway_requests_total{route="/ready",status="503"} 2`) {
		t.Errorf("%s", a.body)
	}
}

func TestSessions(t *testing.T) {
	o := newServer(t, func(o *rest.Options) { o.Limits = &counter{most: 1} })
	const key = "/api/v1/sessions/agent:main:alice:r1"
	said := into[api.Task](t, o.ask("alice", http.MethodPost, key+"/messages", map[string]any{"message": "hi"}, rest.IdempotencyKey, "k"), http.StatusOK)
	again := into[api.Task](t, o.ask("alice", http.MethodPost, key+"/messages", map[string]any{"message": "hi"}, rest.IdempotencyKey, "k"), http.StatusOK)
	if said.Text != "you said hi" || said.State != "done" || said.Account != "alice" || again.ID != said.ID {
		t.Errorf("%+v, %+v", said, again)
	}
	problem(t, o.ask("alice", http.MethodPost, key+"/messages", map[string]any{"message": "other"}, rest.IdempotencyKey, "k"), http.StatusUnprocessableEntity, "idempotency_key_used")
	patched := into[api.Session](t, o.ask("alice", http.MethodPatch, key, map[string]any{"model": "p/m", "outboundHeaders": map[string]string{"x-team": "secret-value"}}), http.StatusOK)
	if patched.Model != "p/m" || len(patched.Headers) != 1 || patched.Headers[0] != "x-team" {
		t.Errorf("%+v", patched)
	}
	if list := into[api.Sessions](t, o.ask("alice", http.MethodGet, "/api/v1/sessions?limit=1", nil), http.StatusOK); len(list.Sessions) != 1 {
		t.Errorf("%+v", list)
	}
	if h := into[api.History](t, o.ask("alice", http.MethodGet, key+"/history", nil), http.StatusOK); len(h.Messages) != 1 {
		t.Errorf("%+v", h)
	}
	for _, c := range []struct{ method, path string }{{http.MethodGet, key}, {http.MethodDelete, key}, {http.MethodGet, key + "/history"}, {http.MethodPost, key + "/reset"}, {http.MethodGet, "/api/v1/tasks/" + said.ID}} {
		if a := o.ask("bob", c.method, c.path, nil); a.StatusCode < 400 || a.StatusCode == 500 || strings.Contains(string(a.body), "secret-value") {
			t.Errorf("bob: %s %s: %d %s", c.method, c.path, a.StatusCode, a.body)
		}
	}
	if list := into[api.Sessions](t, o.ask("bob", http.MethodGet, "/api/v1/sessions", nil), http.StatusOK); len(list.Sessions) != 0 {
		t.Errorf("%+v", list)
	}
	fresh := into[api.Session](t, o.ask("alice", http.MethodPost, key+"/reset", nil), http.StatusOK)
	if fresh.SessionID == patched.SessionID {
		t.Errorf("%+v", fresh)
	}
	into[api.Session](t, o.ask("alice", http.MethodDelete, key, nil), http.StatusOK)
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) { // what is counted is given back a little after the answer
		a := o.ask("alice", http.MethodPost, key+"/messages", map[string]any{"message": "once more"}, async...)
		if a.StatusCode == http.StatusAccepted {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%s", a.body)
		}
	}
}
