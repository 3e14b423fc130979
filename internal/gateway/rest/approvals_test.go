package rest_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/approval"
	"github.com/atoll-run/atoll/internal/gateway/rest"
	"github.com/atoll-run/atoll/internal/run"
)

const approvalsPath = "/api/v1/approvals"

// testApprovals is a real queue, whose answers have a note with a path of the host.
type testApprovals struct{ *approval.Queue }

func (a testApprovals) Answer(ctx context.Context, id string, r approval.Reply) (*approval.Question, string, error) {
	q, err := a.Queue.Answer(ctx, id, r)
	return q, "applied to " + hidden, err
}

// newApprovals returns a server with an open question of alice and one of bob.
func newApprovals(t *testing.T) (o *testServer, alice, bob *approval.Question) {
	t.Helper()
	var queue *approval.Queue
	o = newServer(t, func(o *rest.Options) {
		queue = approval.New(o.Store.(run.Store).DB, nil)
		o.Approvals = testApprovals{queue}
	})
	question := func(account string) *approval.Question {
		q, err := queue.Ask(t.Context(), &approval.Request{Kind: "sync", Subject: account, Owner: approval.Owner{Account: account, Agent: "main"}, Summary: "apply it?", Evidence: "diff of " + account})
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	return o, question("alice"), question("bob")
}

func TestApprovalsOfOthers(t *testing.T) {
	o, alice, bob := newApprovals(t)
	mine := into[api.Approvals](t, o.ask("reader", http.MethodGet, approvalsPath, nil), http.StatusOK)
	if len(mine.Approvals) != 1 || mine.Approvals[0].ID != alice.ID || mine.Approvals[0].Evidence != "" || mine.Approvals[0].Hash != alice.Hash {
		t.Errorf("%+v", mine)
	}
	if all := into[api.Approvals](t, o.ask("root", http.MethodGet, approvalsPath, nil), http.StatusOK); len(all.Approvals) != 2 {
		t.Errorf("%+v", all)
	}
	if q := into[api.Approval](t, o.ask("reader", http.MethodGet, approvalsPath+"/"+alice.ID, nil), http.StatusOK); q.Evidence != "diff of alice" {
		t.Errorf("%+v", q)
	}
	problem(t, o.ask("alice", http.MethodGet, approvalsPath+"/"+bob.ID, nil), http.StatusNotFound, "approval_not_found")
	problem(t, o.ask("alice", http.MethodPost, approvalsPath+"/"+bob.ID, api.ApprovalAnswer{Answer: "once", Hash: bob.Hash}), http.StatusNotFound, "approval_not_found")
	problem(t, o.ask("alice", http.MethodGet, approvalsPath+"?account=bob", nil), http.StatusForbidden, "other_account")
}

// Answers need their own scope, which gives no tasks to agents.
func TestScopeOfApprovals(t *testing.T) {
	o, alice, _ := newApprovals(t)
	yes := api.ApprovalAnswer{Answer: "once", Hash: alice.Hash}
	for _, who := range []string{"reader", "runner"} {
		problem(t, o.ask(who, http.MethodPost, approvalsPath+"/"+alice.ID, yes), http.StatusForbidden, "forbidden")
	}
	problem(t, o.ask("approver", http.MethodPost, runsPath, task("true")), http.StatusForbidden, "forbidden")
	done := into[api.AnsweredApproval](t, o.ask("approver", http.MethodPost, approvalsPath+"/"+alice.ID, yes), http.StatusOK)
	if done.Approval.Answer != "once" || done.Approval.AnsweredBy != "desk (token t-approver)" || strings.Contains(done.Note, "/srv") {
		t.Errorf("%+v", done)
	}
}

func TestBadAnswersToApprovals(t *testing.T) {
	o, alice, bob := newApprovals(t)
	path := approvalsPath + "/" + alice.ID
	problem(t, o.ask("alice", http.MethodPost, path, api.ApprovalAnswer{Answer: "once", Hash: bob.Hash}), http.StatusConflict, "approval_changed")
	for _, body := range []string{`{"answer":"perhaps","hash":"x"}`, `{"answer":"rule","hash":"x"}`, `{"hash":"x"}`, `{"answer":"once","hash":"x","by":"root"}`} {
		problem(t, o.ask("alice", http.MethodPost, path, body), http.StatusUnprocessableEntity, "invalid_request")
	}
	into[api.AnsweredApproval](t, o.ask("alice", http.MethodPost, path, api.ApprovalAnswer{Answer: "deny", Hash: alice.Hash}), http.StatusOK)
	problem(t, o.ask("alice", http.MethodPost, path, api.ApprovalAnswer{Answer: "once", Hash: alice.Hash}), http.StatusConflict, "approval_answered")
	problem(t, o.ask("alice", http.MethodGet, approvalsPath+"/qnone", nil), http.StatusNotFound, "approval_not_found")
	if open := into[api.Approvals](t, o.ask("alice", http.MethodGet, approvalsPath, nil), http.StatusOK); len(open.Approvals) != 0 {
		t.Errorf("%+v", open)
	}
	if all := into[api.Approvals](t, o.ask("alice", http.MethodGet, approvalsPath+"?all=true&kind=sync", nil), http.StatusOK); len(all.Approvals) != 1 {
		t.Errorf("%+v", all)
	}
}

// A list has pages: what follows the last question of one is on the next.
func TestPagesOfApprovals(t *testing.T) {
	o, alice, bob := newApprovals(t)
	seen, cursor := []string{}, ""
	for range 3 {
		page := into[api.Approvals](t, o.ask("root", http.MethodGet, approvalsPath+"?limit=1&cursor="+cursor, nil), http.StatusOK)
		for i := range page.Approvals {
			seen = append(seen, page.Approvals[i].ID)
		}
		cursor = page.Next
	}
	slices.Sort(seen)
	want := []string{alice.ID, bob.ID}
	slices.Sort(want)
	if !slices.Equal(seen, want) || cursor != "" {
		t.Errorf("%v, then %q; want %v", seen, cursor, want)
	}
}
