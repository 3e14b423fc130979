package rest_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/rest"
)

// testSync records who decides about what.
type testSync struct {
	rest.Sync
	subjects []api.SyncSubject
	by       string
}

func (s *testSync) Trees(_ context.Context, of *api.SyncSubject) (*api.SyncTrees, error) {
	s.subjects = append(s.subjects, *of)
	return &api.SyncTrees{Trees: []api.SyncTree{{Base: hidden, Target: "/workspace"}}}, nil
}

func (s *testSync) Diff(_ context.Context, _ *api.SyncSubject, path string) (*api.SyncDiff, error) {
	return &api.SyncDiff{Path: path}, nil
}

func (s *testSync) Approve(_ context.Context, r *api.SyncApproval, by string) (*api.SyncApplied, error) {
	s.subjects, s.by = append(s.subjects, r.Subject), by
	return &api.SyncApplied{ID: "s-1", Base: hidden, Files: []string{r.Choices[0].Path}}, nil
}

func (s *testSync) Reset(_ context.Context, r *api.SyncRequest, _ string) (*api.SyncDone, error) {
	s.subjects = append(s.subjects, r.Subject)
	return &api.SyncDone{}, nil
}

const syncPath = "/api/v1/sync"

func newSync(t *testing.T) (*testServer, *testSync) {
	t.Helper()
	sync := &testSync{}
	return newServer(t, func(o *rest.Options) { o.Sync = sync }), sync
}

func TestSyncIsBoundToTheAccount(t *testing.T) {
	o, sync := newSync(t)
	for _, path := range []string{"", "?agent=main&session=s"} {
		if a := o.ask("reader", http.MethodGet, syncPath+path, nil); a.StatusCode != http.StatusOK || strings.Contains(string(a.body), "/srv") {
			t.Errorf("%d: %s", a.StatusCode, a.body)
		}
	}
	done := into[api.SyncApplied](t, o.ask("approver", http.MethodPost, syncPath+"/approve", `{"subject":{"agent":"main"},"choices":[{"path":"a","sha256":"x"}]}`), http.StatusOK)
	if done.Base != "" || sync.by != "desk (token t-approver)" {
		t.Errorf("%+v by %s", done, sync.by)
	}
	for i, s := range sync.subjects {
		if s.Account != "alice" {
			t.Errorf("%d: %+v", i, s)
		}
	}
	problem(t, o.ask("alice", http.MethodGet, syncPath+"?account=bob", nil), http.StatusForbidden, "other_account")
	problem(t, o.ask("alice", http.MethodGet, syncPath+"?directory=/srv", nil), http.StatusForbidden, "bound_token")
	problem(t, o.ask("alice", http.MethodPost, syncPath+"/reset", `{"subject":{"directory":"/srv"}}`), http.StatusForbidden, "bound_token")
	if a := o.ask("root", http.MethodGet, syncPath+"?directory=/srv/shop", nil); !strings.Contains(string(a.body), hidden) {
		t.Errorf("%s", a.body)
	}
}

// Decisions need the scope operator.approvals; looking does not.
func TestScopeOfSync(t *testing.T) {
	o, sync := newSync(t)
	for _, verb := range []string{"approve", "override", "reject", "undo", "take", "refresh", "reset", "accept-torn"} {
		for _, who := range []string{"reader", "runner"} {
			problem(t, o.ask(who, http.MethodPost, syncPath+"/"+verb, "{}"), http.StatusForbidden, "forbidden")
		}
	}
	if len(sync.subjects) != 0 {
		t.Errorf("%+v", sync.subjects)
	}
	into[api.SyncDone](t, o.ask("approver", http.MethodPost, syncPath+"/reset", "{}"), http.StatusOK)
	into[api.SyncDiff](t, o.ask("reader", http.MethodGet, syncPath+"/diff?path=a", nil), http.StatusOK)
}

func TestBadRequestsOfSync(t *testing.T) {
	o, sync := newSync(t)
	for _, body := range []string{
		`{"subject":{"agent":"main","user":"x"}}`, `{"by":"x"}`, `{"subject":{"scope":"world"}}`, `{"subject":{"tree":-1}}`, `{"subject":{"directory":"/a","agent":"main"}}`,
	} {
		problem(t, o.ask("root", http.MethodPost, syncPath+"/reset", body), http.StatusUnprocessableEntity, "invalid_request")
	}
	for _, query := range []string{"/diff", "?tree=x", "?tree=-1", "?what=1", "?path=" + strings.Repeat("x", 1001)} {
		problem(t, o.ask("root", http.MethodGet, syncPath+query, nil), http.StatusUnprocessableEntity, "invalid_request")
	}
	if len(sync.subjects) != 0 {
		t.Errorf("%+v", sync.subjects)
	}
}
