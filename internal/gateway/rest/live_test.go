package rest_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/approval"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/live"
	"github.com/atoll-run/atoll/internal/gateway/rest"
)

// rowsOf returns the rows of a topic as text.
func rowsOf(t *testing.T, l *rest.Live, who, topic string) string {
	t.Helper()
	rows, err := l.Rows(t.Context(), callers()[who], topic)
	if err != nil {
		t.Fatal(topic, err)
	}
	var text strings.Builder
	for _, r := range rows {
		text.WriteString(r.Key + "=" + string(r.JSON) + "\n")
	}
	return text.String()
}

// What pages follow is what the HTTP interface shows to the same caller.
func TestLiveOfOthers(t *testing.T) {
	uses := []rest.SandboxUse{{Name: "box-alice", Account: "alice"}, {Name: "box-bob", Account: "bob"}}
	o := newServer(t, func(o *rest.Options) {
		o.Approvals = liveApprovals{}
		o.Usage = func(context.Context) ([]rest.SandboxUse, error) { return uses, nil }
		o.Ready = func(context.Context) error { return errDisk }
	})
	runs := map[string]string{}
	for _, who := range []string{"alice", "bob"} {
		runs[who] = into[api.Run](t, o.ask(who, http.MethodPost, "/api/v1/ai/runs", task("echo secret-of-"+who), async...), http.StatusAccepted).ID
		into[api.Task](t, o.ask(who, http.MethodPost, "/api/v1/sessions/agent:main:"+who+":x/messages", map[string]any{"message": "hi"}), http.StatusOK)
	}
	l := o.rest.Live()
	for _, topic := range []string{live.TopicRuns, live.TopicSandboxes, live.TopicUsage, live.TopicApprovals, live.TopicSessions} {
		mine := rowsOf(t, l, "alice", topic)
		if strings.Contains(mine, "bob") || strings.Contains(mine, runs["bob"]) || !strings.Contains(mine, "alice") {
			t.Errorf("%s: %s", topic, mine)
		}
		if all := rowsOf(t, l, "root", topic); !strings.Contains(all, "bob") {
			t.Errorf("%s: %s", topic, all)
		}
	}
	if mine := rowsOf(t, l, "alice", live.TopicSandboxes); strings.Contains(mine, "/home/op") {
		t.Errorf("a path of the host: %s", mine)
	}
	if mine := rowsOf(t, l, "alice", live.TopicHealth); strings.Contains(mine, "/home") || !strings.Contains(mine, `"ready":false`) {
		t.Errorf("%s", mine)
	}
	if all := rowsOf(t, l, "root", live.TopicHealth); !strings.Contains(all, "/home") {
		t.Errorf("%s", all)
	}
	checkLiveOf(t, l, runs["bob"])
}

var errDisk = errors.New("the database at /home/op does not answer")

// checkLiveOf looks for a run and a session of bob as alice.
func checkLiveOf(t *testing.T, l *rest.Live, run string) {
	t.Helper()
	alice := callers()["alice"]
	for _, id := range []string{run, "run-none"} {
		if _, _, err := l.Run(t.Context(), alice, id, 0); l.Problem(alice, err).Code != "run_not_found" {
			t.Errorf("%s: %v", id, err)
		}
	}
	for _, key := range []string{"agent:main:bob:x", "agent:main:bob:none"} {
		if _, err := l.Session(t.Context(), alice, key); l.Problem(alice, err).Code != "session_not_found" {
			t.Errorf("%s: %v", key, err)
		}
	}
	if r, events, err := l.Run(t.Context(), callers()["bob"], run, 0); err != nil || r.ID != run {
		t.Errorf("%+v, %+v, %v", r, events, err)
	}
	if p := l.Problem(nil, access.ErrDenied); p.Status != http.StatusUnauthorized {
		t.Errorf("%+v", p)
	}
}

// liveApprovals are a question of each account.
type liveApprovals struct{ rest.Approvals }

func (liveApprovals) List(_ context.Context, f approval.Filter) (list []approval.Question, err error) {
	for _, account := range []string{"alice", "bob"} {
		if f.Account == "" || f.Account == account {
			list = append(list, approval.Question{ID: "q-" + account, Owner: approval.Owner{Account: account}})
		}
	}
	return list, nil
}
