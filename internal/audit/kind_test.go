package audit_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/audit"
)

// Records of all kinds are in one chain; verify and tail take them as they come.
func TestKindsShareOneChain(t *testing.T) {
	dir, key := t.TempDir(), "sk-"+strings.Repeat("a", 20)
	l := open(t, dir, audit.Options{})
	l.AddScrubber(func(s string) string { return strings.ReplaceAll(s, "host-secret", "[secret]") })
	who := audit.Subject{Account: "ann", Run: "r1"}
	for _, e := range []audit.Event{
		paid("m1"), &audit.ExecEvent{Time: time.Now(), Subject: who, Sandbox: "sbx", Program: "/bin/" + key + " host-secret", Arguments: 2},
		&audit.GitEvent{Time: time.Now(), Subject: who, Step: "pushed", Branch: "sandbox/x"},
		&audit.ApprovalEvent{Time: time.Now(), Subject: who, Event: "answered", ID: "q1", Answer: "once", By: "ann"},
		&audit.LoginEvent{Time: time.Now(), Token: "t1", Denied: "revoked"},
		&audit.EgressEvent{Time: time.Now(), Subject: who, Event: audit.EgressDenied, Name: "host-secret.example.com", Port: 443, Method: key, Reason: "no rule for " + key},
	} {
		if err := l.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if report := sound(t, dir); report.Records != 6 {
		t.Errorf("%d records", report.Records)
	}
	entries, err := audit.Tail(dir, 10, nil)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, entry := range entries {
		var r struct{ Kind string }
		if err := json.Unmarshal([]byte(entry.JSON), &r); err != nil {
			t.Fatalf("%s: %v", entry.JSON, err)
		}
		if kinds = append(kinds, r.Kind); strings.Contains(entry.JSON, key) || strings.Contains(entry.JSON, "host-secret") {
			t.Errorf("a secret is in %s", entry.JSON)
		}
	}
	if got := strings.Join(kinds, " "); got != "model exec git approval login egress" {
		t.Errorf("got %s", got)
	}
}

// Events of one kind are limited apart from those of another: commands cannot
// keep refusals out of the log.
func TestKindsAreLimitedApart(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, audit.Options{FreeRate: 0.001, FreeBurst: 2})
	who := audit.Subject{Run: "r1"}
	for range 10 {
		if err := l.Append(&audit.ExecEvent{Time: time.Now(), Subject: who, Program: "true"}); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range []audit.Event{&audit.ModelRequest{Time: time.Now(), Subject: who, Denied: "no grant"}, &audit.GitEvent{Time: time.Now(), Subject: who}} {
		if err := l.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if report := sound(t, dir); report.Records != 4 || report.Dropped != 8 {
		t.Errorf("%d records, %d dropped", report.Records, report.Dropped)
	}
}

func TestKindsOfEarlierRecords(t *testing.T) {
	for stored, want := range map[string]audit.Kind{"": audit.Model, "llm": audit.Model, "llm-replay": audit.Model, "call": audit.Model, "relay pushed": audit.Git, "login": audit.Login} {
		if got := audit.KindOf(stored); got != want {
			t.Errorf("%q is %s", stored, got)
		}
	}
	for text, want := range map[string]int{"": 0, "git": 1, "model, login": 2} {
		if kinds, err := audit.ParseKinds(text); err != nil || len(kinds) != want {
			t.Errorf("%q: %v, %v", text, kinds, err)
		}
	}
	if _, err := audit.ParseKinds("git,mail"); err == nil || !strings.Contains(err.Error(), "approval") {
		t.Errorf("got %v", err)
	}
}
