package rest_test

import (
	"context"
	"io/fs"
	"net/http"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/rest"
)

// testSettings are budgets of each account.
type testSettings struct{}

func (testSettings) Config(agent string) (*api.Config, error) {
	return &api.Config{Agent: agent, Settings: []api.Setting{{Key: "sandbox.mode", Value: "all", Source: "global", Line: 3}}}, nil
}
func (testSettings) Images(context.Context) ([]api.Image, error) {
	return []api.Image{{ID: "i", Names: []string{"debian"}}}, nil
}
func (testSettings) Accounts(context.Context) ([]string, error) {
	return []string{"", "alice", "bob"}, nil
}
func (testSettings) Budgets(_ context.Context, account string) ([]api.SpendBudget, error) {
	return []api.SpendBudget{{Scope: "account", Account: account, MicroUSD: 5}}, nil
}

// testRelay has the commits of a run of each account.
type testRelay struct{ pushed *[]string }

func (r testRelay) List(context.Context) ([]api.RelayRecord, error) {
	return []api.RelayRecord{{Run: "run-alice", Account: "alice", Trouble: "no /home/op/key"}, {Run: "run-bob", Account: "bob"}}, nil
}

func (r testRelay) Get(ctx context.Context, run string) (*api.RelayRecord, error) {
	list, _ := r.List(ctx)
	for i := range list {
		if list[i].Run == run {
			return &list[i], nil
		}
	}
	return nil, fs.ErrNotExist
}

func (r testRelay) Patch(_ context.Context, run string, most int) (*api.RelayPatch, error) {
	return &api.RelayPatch{Patch: strings.Repeat("x", most), Why: "of " + run + ": no /home/op/key"}, nil
}

func (r testRelay) Push(ctx context.Context, run string, approve bool, by string) (*api.RelayRecord, error) {
	if approve {
		*r.pushed = append(*r.pushed, run+" by "+by)
	}
	return r.Get(ctx, run)
}

func (r testRelay) Retry(ctx context.Context) ([]api.RelayRecord, error) { return r.List(ctx) }

func TestRelayOfOthers(t *testing.T) {
	var pushed []string
	o := newServer(t, func(o *rest.Options) { o.Relay = testRelay{&pushed} })
	mine := into[api.RelayRecords](t, o.ask("alice", http.MethodGet, "/api/v1/relay", nil), http.StatusOK)
	if len(mine.Relays) != 1 || mine.Total != 1 || mine.Relays[0].Run != "run-alice" || mine.Relays[0].Trouble == "no /home/op/key" {
		t.Errorf("%+v", mine)
	}
	if all := into[api.RelayRecords](t, o.ask("root", http.MethodGet, "/api/v1/relay?limit=1", nil), http.StatusOK); len(all.Relays) != 1 || all.Total != 2 {
		t.Errorf("%+v", all)
	}
	for _, run := range []string{"run-bob", "run-none", "..%2f..%2fx"} {
		problem(t, o.ask("alice", http.MethodGet, "/api/v1/relay/"+run, nil), http.StatusNotFound, "relay_not_found")
		problem(t, o.ask("alice", http.MethodGet, "/api/v1/relay/"+run+"/patch", nil), http.StatusNotFound, "relay_not_found")
		problem(t, o.ask("alice", http.MethodPost, "/api/v1/relay/"+run+"/push", `{"approve":true}`), http.StatusNotFound, "relay_not_found")
	}
	if p := into[api.RelayPatch](t, o.ask("alice", http.MethodGet, "/api/v1/relay/run-alice/patch", nil), http.StatusOK); len(p.Patch) != 1<<20 || strings.Contains(p.Why, "/home") {
		t.Errorf("%d bytes, %s", len(p.Patch), p.Why)
	}
	into[api.RelayRecord](t, o.ask("alice", http.MethodPost, "/api/v1/relay/run-alice/push", `{"approve":true}`), http.StatusOK)
	if len(pushed) != 1 || pushed[0] != "run-alice by token t-alice" {
		t.Errorf("%v", pushed)
	}
	problem(t, o.ask("approver", http.MethodPost, "/api/v1/relay/run-alice/push", `{}`), http.StatusForbidden, "forbidden")
	problem(t, o.ask("alice", http.MethodPost, "/api/v1/relay/retry", nil), http.StatusForbidden, "bound_token")
	into[api.RelayRecords](t, o.ask("root", http.MethodPost, "/api/v1/relay/retry", nil), http.StatusOK)
}

func TestSettingsOfOthers(t *testing.T) {
	o := newServer(t, func(o *rest.Options) { o.Settings, o.AgentNames = testSettings{}, []string{"main"} })
	if mine := into[api.Budgets](t, o.ask("alice", http.MethodGet, "/api/v1/budgets", nil), http.StatusOK); len(mine.Budgets) != 1 || mine.Budgets[0].Account != "alice" {
		t.Errorf("%+v", mine)
	}
	if all := into[api.Budgets](t, o.ask("root", http.MethodGet, "/api/v1/budgets", nil), http.StatusOK); len(all.Budgets) != 3 {
		t.Errorf("%+v", all)
	}
	for _, path := range []string{"/api/v1/config", "/api/v1/images"} {
		problem(t, o.ask("alice", http.MethodGet, path, nil), http.StatusForbidden, "bound_token")
	}
	if c := into[api.Config](t, o.ask("root", http.MethodGet, "/api/v1/config?agent=main", nil), http.StatusOK); c.Agent != "main" || c.Settings[0].Line != 3 {
		t.Errorf("%+v", c)
	}
	problem(t, o.ask("root", http.MethodGet, "/api/v1/config?agent=none", nil), http.StatusUnprocessableEntity, "invalid_request")
	into[api.Images](t, o.ask("root", http.MethodGet, "/api/v1/images", nil), http.StatusOK)
}

// A list that the caller has already is not sent again.
func TestNotModified(t *testing.T) {
	o := newServer(t, nil)
	first := o.ask("alice", http.MethodGet, "/api/v1/sandboxes", nil)
	tag := first.Header.Get("ETag")
	if first.StatusCode != http.StatusOK || tag == "" {
		t.Fatalf("%d %q", first.StatusCode, tag)
	}
	if again := o.ask("alice", http.MethodGet, "/api/v1/sandboxes", nil, "If-None-Match", `"x", `+tag); again.StatusCode != http.StatusNotModified || len(again.body) != 0 || again.Header.Get("ETag") != tag {
		t.Errorf("%d %s", again.StatusCode, again.body)
	}
	if other := o.ask("bob", http.MethodGet, "/api/v1/sandboxes", nil, "If-None-Match", tag); other.StatusCode != http.StatusOK {
		t.Errorf("another account: %d", other.StatusCode)
	}
}
