package rest_test

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/rest"
)

// A run says what was asked, of whom and for which branch; lists are chosen by what
// a page filters, count all pages, and show nothing of another account.
func TestRunsAreChosen(t *testing.T) {
	o := newServer(t, nil)
	long := "echo fine # " + strings.Repeat("ä", 3000)
	good, bad := o.start("alice", long), o.start("alice", "exit 3 # Wrong")
	foreign := o.start("bob", "echo wrong")
	for _, r := range []*api.Run{good, bad, foreign} {
		o.until("root", r.ID, api.RunOver)
	}
	one := into[api.Run](t, o.ask("alice", http.MethodGet, "/api/v1/ai/runs/"+good.ID, nil), http.StatusOK)
	if len(one.Task) < 4000 || len(one.Task) > 4<<10 || !strings.HasPrefix(long, one.Task) || len(one.Trace) != 32 || one.WaitingFor != "" {
		t.Errorf("%d bytes of a task, %+v", len(one.Task), one)
	}
	hour := url.QueryEscape(time.Now().Add(-time.Hour).Format(time.RFC3339))
	for query, want := range map[string][]string{
		"": {bad.ID, good.ID}, "state=done": {good.ID}, "state=failed": {bad.ID}, "state=open": {}, "error=agent_failed": {bad.ID}, "error=timeout": {},
		"q=WRONG": {bad.ID}, "q=" + good.ID[:12]: {good.ID}, "model=m": {bad.ID, good.ID}, "model=other": {}, "branch=b": {}, "since=" + hour: {bad.ID, good.ID}, "until=" + hour: {}, "q=%25": {},
	} {
		got := into[api.Runs](t, o.ask("alice", http.MethodGet, "/api/v1/ai/runs?fields=summary&"+query, nil), http.StatusOK)
		ids := []string{}
		for _, r := range got.Runs {
			if ids = append(ids, r.ID); r.Text != "" || len(r.Task) > 200 {
				t.Errorf("%s: not a summary: %+v", query, r)
			}
		}
		if strings.Join(ids, " ") != strings.Join(want, " ") || got.Total != len(want) {
			t.Errorf("%s: %v of %d, want %v", query, ids, got.Total, want)
		}
	}
	if page := into[api.Runs](t, o.ask("root", http.MethodGet, "/api/v1/ai/runs?limit=1", nil), http.StatusOK); page.Total != 3 || len(page.Runs) != 1 || page.Next == "" {
		t.Errorf("%+v", page)
	}
	for _, wrong := range []string{"state=lost", "since=yesterday", "fields=all", "q=" + strings.Repeat("x", 201)} {
		problem(t, o.ask("alice", http.MethodGet, "/api/v1/ai/runs?"+wrong, nil), http.StatusUnprocessableEntity, "invalid_request")
	}
}

// A run has the address of its trace in the operator's tool, whatever its id is.
func TestTraceLinks(t *testing.T) {
	o := newServer(t, func(o *rest.Options) { o.TraceLink = "https://tool.example.org/t/{trace}?q={trace}" })
	for trace, want := range map[string]string{
		"abc": "https://tool.example.org/t/abc?q=abc", "a b&c/../d?e#f": "https://tool.example.org/t/a%20b%26c%2F..%2Fd%3Fe%23f?q=a%20b%26c%2F..%2Fd%3Fe%23f", "..": "", "": "",
	} {
		if got := o.rest.TraceURL(trace); got != want {
			t.Errorf("%q: %s, want %s", trace, got, want)
		}
	}
	begun := o.start("alice", "echo fine")
	if one := into[api.Run](t, o.ask("alice", http.MethodGet, "/api/v1/ai/runs/"+begun.ID, nil), http.StatusOK); !strings.Contains(one.TraceURL, "/t/"+one.Trace+"?") {
		t.Errorf("%+v", one)
	}
}

// The calls of a run are those of the caller's account.
func TestCallsOfARun(t *testing.T) {
	o := newServer(t, nil)
	r := o.start("alice", "true")
	calls := into[api.ModelCalls](t, o.ask("alice", http.MethodGet, "/api/v1/ai/runs/"+r.ID+"/calls", nil), http.StatusOK)
	if len(calls.Calls) != 1 || calls.Calls[0].ID != "c1" || calls.Calls[0].MicroUSD != 3 || !calls.Calls[0].Billed || calls.Calls[0].Input != 7 {
		t.Errorf("%+v", calls)
	}
	problem(t, o.ask("bob", http.MethodGet, "/api/v1/ai/runs/"+r.ID+"/calls", nil), http.StatusNotFound, "run_not_found")
}

func TestCostSeries(t *testing.T) {
	o := newServer(t, nil)
	got := into[api.CostSeries](t, o.ask("alice", http.MethodGet, "/api/v1/costs/series?by=model", nil), http.StatusOK)
	if len(got.Points) != 1 || got.Points[0].Key != "model alice" || time.Since(got.Points[0].At) < 29*24*time.Hour {
		t.Errorf("%+v", got)
	}
	problem(t, o.ask("alice", http.MethodGet, "/api/v1/costs/series?account=bob", nil), http.StatusForbidden, "other_account")
	problem(t, o.ask("alice", http.MethodGet, "/api/v1/costs/series?bucket=hour", nil), http.StatusUnprocessableEntity, "too_many_points")
	problem(t, o.ask("alice", http.MethodGet, "/api/v1/costs/series?by=prompt", nil), http.StatusUnprocessableEntity, "invalid_request")
}

// manyRecords is an audit log of which several records have the same time.
type manyRecords struct{ testLedger }

func (manyRecords) AuditTail(most int, match func(string) bool) (list []audit.Entry, err error) {
	for i := range 25 {
		line := fmt.Sprintf(`{"time":"2026-01-01T00:00:%02d.000Z","kind":"%s","account":"alice","n":%d}`, i/4, []string{"model", "exec"}[i%2], i)
		if match(line) {
			list = append(list, audit.Entry{JSON: line})
		}
	}
	return list[max(len(list)-most, 0):], nil
}

// Pages of the audit log have every record once, whatever their times.
func TestAuditPages(t *testing.T) {
	o := newServer(t, func(o *rest.Options) { o.Ledger = manyRecords{} })
	for query, want := range map[string]int{"": 25, "kind=exec": 12, "kind=exec,model": 25, "kind=git": 0, "since=2026-01-01T00:00:06Z": 1, "until=2026-01-01T00:00:01Z": 4} {
		seen, cursor := map[string]bool{}, ""
		for range 30 {
			page := into[api.Audit](t, o.ask("alice", http.MethodGet, "/api/v1/audit?limit=3&"+query+"&cursor="+url.QueryEscape(cursor), nil), http.StatusOK)
			for _, r := range page.Records {
				if seen[string(r)] {
					t.Errorf("%s: twice: %s", query, r)
				}
				seen[string(r)] = true
			}
			if cursor = page.Next; cursor == "" {
				break
			}
		}
		if len(seen) != want {
			t.Errorf("%s: %d records, want %d", query, len(seen), want)
		}
	}
	for _, wrong := range []string{"kind=secrets", "cursor=x", "cursor=2026-01-01T00:00:06Z~-1"} {
		problem(t, o.ask("alice", http.MethodGet, "/api/v1/audit?"+wrong, nil), http.StatusUnprocessableEntity, "invalid_request")
	}
}

// The audit log is verified for those who see all accounts.
func TestAuditIsVerified(t *testing.T) {
	o := newServer(t, nil)
	got := into[api.AuditVerification](t, o.ask("root", http.MethodPost, "/api/v1/audit/verify", nil), http.StatusOK)
	if got.OK || got.Records != 2 || len(got.Problems) != 1 || got.Problems[0].Line != 2 {
		t.Errorf("%+v", got)
	}
	problem(t, o.ask("alice", http.MethodPost, "/api/v1/audit/verify", nil), http.StatusForbidden, "forbidden")
}

// testChoices has a variant that cannot work.
type testChoices struct{}

func (testChoices) Variants(context.Context) ([]api.Variant, error) {
	return []api.Variant{{ID: "v", Name: "V", Unavailable: "/home/op/tool is missing"}}, nil
}
func (testChoices) Models(context.Context) ([]api.Model, error) {
	return []api.Model{{ID: "p/m", Name: "M", Provider: "p"}}, nil
}

func TestChoices(t *testing.T) {
	o := newServer(t, func(o *rest.Options) { o.Choices = testChoices{} })
	for who, path := range map[string]bool{"root": true, "alice": false} {
		got := into[api.Variants](t, o.ask(who, http.MethodGet, "/api/v1/variants", nil), http.StatusOK)
		if len(got.Variants) != 1 || got.Variants[0].Unavailable == "" || strings.Contains(got.Variants[0].Unavailable, "/home/op") != path {
			t.Errorf("%s: %+v", who, got)
		}
		if got := into[api.Models](t, o.ask(who, http.MethodGet, "/api/v1/models", nil), http.StatusOK); len(got.Models) != 1 || got.Models[0].ID != "p/m" {
			t.Errorf("%+v", got)
		}
	}
}

// Large answers are compressed for those who take that, and no others.
func TestAnswersAreCompressed(t *testing.T) {
	o := newServer(t, nil)
	r := o.start("alice", "true # "+strings.Repeat("x", 3000))
	for header, packed := range map[string]bool{"gzip": true, "br, gzip;q=0.5": true, "gzip;q=0": false, "identity": false} {
		a := o.ask("alice", http.MethodGet, "/api/v1/ai/runs/"+r.ID, nil, "Accept-Encoding", header)
		if got := a.Header.Get("Content-Encoding") == "gzip"; got != packed || a.Header.Get("Vary") == "" {
			t.Fatalf("%q: %v", header, a.Header)
		}
		if packed {
			z, err := gzip.NewReader(strings.NewReader(string(a.body)))
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(z)
			if err != nil || len(a.body) > 1000 || !strings.Contains(string(text), r.ID) {
				t.Errorf("%d bytes, %v", len(a.body), err)
			}
		}
	}
	if a := o.ask("alice", http.MethodGet, "/health", nil, "Accept-Encoding", "gzip"); a.Header.Get("Content-Encoding") != "" {
		t.Error("a small answer was compressed")
	}
}

// The machine is for those who see all accounts; tokens are an admin's, those of its
// account.
func TestMachineAndTokens(t *testing.T) {
	o := newServer(t, func(o *rest.Options) {
		o.Examine = func(context.Context) []api.DoctorCheck {
			return []api.DoctorCheck{{Name: "disk", Status: "ok", Detail: "fine"}}
		}
		o.Tokens = &tokenList{{ID: "t1", Spec: access.Spec{Account: "alice", Scope: access.Read}}, {ID: "t2", Spec: access.Spec{Account: "bob", Scope: access.Run}}}
	})
	if got := into[api.Doctor](t, o.ask("root", http.MethodGet, "/api/v1/doctor", nil), http.StatusOK); len(got.Checks) != 1 {
		t.Errorf("%+v", got)
	}
	problem(t, o.ask("alice", http.MethodGet, "/api/v1/doctor", nil), http.StatusForbidden, "bound_token")
	if got := into[api.Tokens](t, o.ask("root", http.MethodGet, "/api/v1/tokens", nil), http.StatusOK); len(got.Tokens) != 2 || got.Tokens[1].Scope != "run" {
		t.Errorf("%+v", got)
	}
	problem(t, o.ask("alice", http.MethodGet, "/api/v1/tokens", nil), http.StatusForbidden, "forbidden")
}
