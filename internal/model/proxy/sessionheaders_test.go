package proxy_test

import (
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/model/proxy"
)

// What a session adds goes with its calls, in the place of what we would say of
// them; who pays, and our own id of the request, are not its to change.
func TestSessionHeaders(t *testing.T) {
	m := newModel(t, chat(1))
	own := terms()
	own.Headers = map[string]string{
		"x-tag": "a", "X-Cogni-Run-Id": "their-run", "x-litellm-end-user-id": "eve", "x-litellm-spend-logs-metadata": `{"run_id":"their-run","extra":{"n":1},"req":"forged"}`,
	}
	newProxy(t, m.URL, nil).listen(own).post(chatPath, hello).want(t, 200)
	q := m.only(t)
	for name, want := range map[string]string{"X-Tag": "a", "X-Cogni-Run-Id": "their-run", "X-Litellm-End-User-Id": "account-1"} {
		if got := q.Header.Values(name); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	got := q.Header.Get("X-Litellm-Spend-Logs-Metadata")
	if want := `{"attempt":0,"graph_id":"sandbox:agent","session_id":"agent:main:main","existing_trace_id":"trace-1","extra":{"n":1},"run_id":"their-run","req":"` + q.Header.Get("X-Litellm-Call-Id") + `"}`; got != want {
		t.Errorf("metadata %s", got)
	}
}

// A caller without an account may name one.
func TestSessionNamesItsAccount(t *testing.T) {
	m := newModel(t, chat(1))
	own := terms()
	own.Account, own.Headers = "", map[string]string{"x-litellm-end-user-id": "acct"}
	newProxy(t, m.URL, nil).listen(own).post(chatPath, hello).want(t, 200)
	if got := m.only(t).Header.Values("X-Litellm-End-User-Id"); len(got) != 1 || got[0] != "acct" {
		t.Errorf("%q", got)
	}
}

// Headers that could be read as more than one never make a caller.
func TestSessionHeadersThatCannotBeSent(t *testing.T) {
	own := terms()
	own.Headers = map[string]string{"x-tag": "a\r\nx-litellm-end-user-id: eve"}
	if _, err := proxy.NewCaller(own, nil); err == nil || !strings.Contains(err.Error(), "x-tag") {
		t.Error(err)
	}
	if _, err := proxy.NewCaller(&grant.Terms{Headers: map[string]string{"authorization": "x"}}, nil); err == nil {
		t.Error("a credential of a session is sent")
	}
}
