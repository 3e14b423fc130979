package proxy_test

import (
	"context"
	"encoding/json"
	"maps"
	"testing"

	"github.com/atoll-run/atoll/internal/audit/traceparent"
	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/model/proxy"
	"github.com/atoll-run/atoll/internal/model/usage"
)

// told is the metadata that the upstream got with a request.
func told(t *testing.T, q *seen) map[string]any {
	t.Helper()
	var members map[string]any
	must(t, json.Unmarshal([]byte(q.Header.Get("X-Litellm-Spend-Logs-Metadata")), &members))
	return members
}

// Every call tells which attempt and which trace it is of, whatever the terms leave
// open.
func TestEveryCallTellsItsAttemptAndTrace(t *testing.T) {
	m := newModel(t, chat(1))
	own := terms()
	own.Attempt, own.Trace = "", ""
	newProxy(t, m.URL, nil).listen(own).post(chatPath, hello).want(t, 200)
	q := m.only(t)
	got := told(t, &q)
	if id, _ := got["existing_trace_id"].(string); got["attempt"] != 0.0 || !traceparent.IsID(id) || traceparent.TraceID(q.Header.Get("Traceparent")) != id {
		t.Errorf("%v, %v", got, q.Header)
	}
}

// In shared mode what a gateway says of a call, and the token leaves open, arrives as
// it was written: numbers as numbers, and what we do not know too.
func TestMetadataOfSharedModeArrivesAsItWasWritten(t *testing.T) {
	m := newModel(t, chat(1))
	p := newProxy(t, m.URL, nil)
	open := &grant.Terms{Session: "agent:main:main", Account: "account-1", Models: []string{"good"}, Until: terms().Until}
	bound := terms()
	bound.Attempt = "3"
	p.socket = p.serve(proxy.AuthenticateByToken(func(_ context.Context, token string) (*grant.Terms, error) {
		if token == "atoll_bound" {
			return bound, nil
		}
		return open, nil
	}, func(*grant.Terms) []usage.Limit { return nil }))
	said := `x-litellm-spend-logs-metadata: {"run_id":"r-9","attempt":2,"graph_id":"g","session_id":"s-9","existing_trace_id":"t-9","extra":{"deep":[1,"x"]},"flag":true,"req":"forged"}`
	p.post(chatPath, hello, "Authorization: Bearer atoll_open", said).want(t, 200)
	p.post(chatPath, hello, "Authorization: Bearer atoll_bound", said).want(t, 200)
	asks := m.asked()
	want := map[string]any{"run_id": "r-9", "attempt": 2.0, "graph_id": "g", "session_id": "s-9", "existing_trace_id": "t-9", "extra": map[string]any{"deep": []any{1.0, "x"}}, "flag": true}
	theirs := maps.Clone(want)
	maps.Copy(theirs, map[string]any{"run_id": "run-1", "attempt": 3.0, "graph_id": "sandbox:agent", "existing_trace_id": "trace-1"})
	for i, want := range []map[string]any{want, theirs} {
		got := told(t, &asks[i])
		if got["req"] != asks[i].Header.Get("X-Litellm-Call-Id") {
			t.Errorf("the id of the request is %v", got["req"])
		}
		delete(got, "req")
		have, _ := json.Marshal(got)
		wanted, _ := json.Marshal(want)
		if string(have) != string(wanted) {
			t.Errorf("got %s\nwant %s", have, wanted)
		}
	}
}
