package rest_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/gateway/rest"
	"github.com/atoll-run/atoll/internal/gateway/session"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/store"
	"github.com/atoll-run/atoll/internal/testkit/gatewaytest"
)

// talkingWorker is a worker that says as many words as its message names, or works
// until it is stopped.
type talkingWorker struct {
	gatewaytest.Echo
	began chan struct{}
	going chan struct{} // nil: it does not wait
}

func (w *talkingWorker) Work(ctx context.Context, j *session.Job, tell func(session.Event)) (*session.Outcome, error) {
	tell(session.Event{Kind: session.Prepared, Location: &session.Location{Run: "task-1", Model: "p/m", Sandbox: "box"}})
	n, err := strconv.Atoi(j.Message)
	if err != nil { // it never ends
		w.began <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if w.going != nil {
		w.began <- struct{}{}
		<-w.going
	}
	tell(session.Event{Kind: session.Called, Call: &chat.Call{ID: "1", Name: "exec", Args: "{}"}})
	tell(session.Event{Kind: session.Returned, Call: &chat.Call{ID: "1", Name: "exec"}, Result: "ok", TookMs: 1.5})
	for i := range n {
		tell(session.Event{Kind: session.Said, Delta: "word" + strconv.Itoa(i) + " "})
	}
	return &session.Outcome{Text: "said", Model: "p/m", Report: &session.Report{Run: "task-1", Turns: 2, Calls: 1, TookMs: 3}}, nil
}

// newChatServer returns a server whose sessions are run by a talkingWorker.
func newChatServer(t *testing.T, w *talkingWorker, change func(*rest.Options)) *testServer {
	t.Helper()
	db, err := store.Open(t.Context(), t.TempDir()+"/atoll.db")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	chats := session.New(session.Options{DB: db, Worker: w, Names: policy.Sessions{DefaultAgent: "main"}})
	t.Cleanup(chats.Close)
	return newServer(t, func(o *rest.Options) {
		o.Sessions = chats
		if change != nil {
			change(o)
		}
	})
}

const aliceSession = "/api/v1/sessions/agent:main:alice:r1/messages"

// A message is answered as a stream: the task, what happens numbered without a gap,
// and the answer; a reader whose connection broke goes on where it was.
func TestTaskStream(t *testing.T) {
	o := newChatServer(t, &talkingWorker{}, nil)
	body := map[string]any{"message": "5"}
	a := o.ask("alice", http.MethodPost, aliceSession, body, "Accept", "text/event-stream", rest.IdempotencyKey, "k")
	events := readSSE(strings.NewReader(string(a.body)))
	if len(events) < 5 || events[0].event != "task" || events[len(events)-1].event != "answer" || a.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s %+v", a.body, events)
	}
	var names []string
	for i, e := range events[1 : len(events)-1] {
		names = append(names, e.event)
		if e.id != strconv.Itoa(i+1) {
			t.Errorf("event %d has the number %s", i, e.id)
		}
	}
	want := []string{"started", "prepared", "tool_call", "tool_result", "text_delta", "text_delta", "text_delta", "text_delta", "text_delta", "done"}
	if !slices.Equal(names, want) {
		t.Errorf("%v", names)
	}
	var over api.Task
	if err := json.Unmarshal([]byte(events[len(events)-1].data), &over); err != nil || over.Text != "said" || over.Report == nil || over.Report.Turns != 2 {
		t.Errorf("%+v, %v", over, err)
	}
	path := "/api/v1/tasks/" + over.ID + "/events"
	rest2 := readSSE(strings.NewReader(string(o.ask("alice", http.MethodGet, path, nil, "Last-Event-ID", "8").body)))
	if len(rest2) != 4 || rest2[1].id != "9" || rest2[3].event != "answer" {
		t.Errorf("%+v", rest2)
	}
	page := into[api.Events](t, o.ask("alice", http.MethodGet, path+"?after=9", nil, "Accept", "application/json"), http.StatusOK)
	if len(page.Events) != 1 || !page.Over || page.Events[0].Type != api.EventDone {
		t.Errorf("%+v", page)
	}
	for _, c := range [][2]string{{http.MethodGet, path}, {http.MethodGet, "/api/v1/tasks/" + over.ID}, {http.MethodDelete, "/api/v1/tasks/" + over.ID}} {
		problem(t, o.ask("bob", c[0], c[1], nil), http.StatusNotFound, "task_not_found")
	}
	problem(t, o.ask("alice", http.MethodGet, path, nil, "Last-Event-ID", "x"), http.StatusUnprocessableEntity, "invalid_request")
}

// A client that loses its connection again and again receives every event once.
func TestTaskClientReconnects(t *testing.T) {
	w := &talkingWorker{began: make(chan struct{}, 1), going: make(chan struct{})}
	o := newChatServer(t, w, nil)
	cut := &cuttingListener{Handler: o.rest}
	server := httptest.NewServer(cut)
	defer server.Close()
	task, err := o.clientOf(o.url, "alice").Submit(t.Context(), "agent:main:alice:r1", &api.SendRequest{Message: "60"}, "")
	if err != nil {
		t.Fatal(err)
	}
	<-w.began
	close(w.going)
	var got []int64
	last, err := o.clientOf(server.URL, "alice").TaskEvents(t.Context(), task.ID, 0, func(e api.Event) error { got = append(got, e.Seq); return nil })
	if err != nil || last.Text != "said" || cut.cuts.Load() == 0 {
		t.Fatalf("%+v, %v, %d cuts", last, err, cut.cuts.Load())
	}
	for i, seq := range got {
		if seq != int64(i+1) {
			t.Fatalf("%v", got)
		}
	}
	if len(got) != 65 {
		t.Errorf("%d events", len(got))
	}
}

// One task is ended, and the stream of its reader ends with what became of it.
func TestTaskCancel(t *testing.T) {
	w := &talkingWorker{began: make(chan struct{}, 1)}
	o := newChatServer(t, w, nil)
	c := o.clientOf(o.url, "alice")
	task, err := c.Submit(t.Context(), "agent:main:alice:r1", &api.SendRequest{Message: "for ever"}, "")
	if err != nil {
		t.Fatal(err)
	}
	<-w.began
	read := make(chan *api.Task, 1)
	go func() {
		over, _ := c.TaskEvents(t.Context(), task.ID, 0, func(api.Event) error { return nil })
		read <- over
	}()
	over, err := c.CancelTask(t.Context(), task.ID)
	if err != nil || over.State != "aborted" {
		t.Errorf("%+v, %v", over, err)
	}
	if last := <-read; last == nil || last.State != "aborted" {
		t.Errorf("%+v", last)
	}
	if again, err := c.CancelTask(t.Context(), task.ID); err != nil || again.State != "aborted" {
		t.Errorf("%+v, %v", again, err)
	}
}

// What is kept for readers that come again is bounded: of a long answer the end is
// there, and the answer itself.
func TestTaskLogIsBounded(t *testing.T) {
	for name, limit := range map[string]rest.Limit{"of one": {Log: 10_000}, "of all": {Logs: 10_000}} {
		t.Run(name, func(t *testing.T) { logIsBounded(t, limit) })
	}
}

func logIsBounded(t *testing.T, limit rest.Limit) {
	o := newChatServer(t, &talkingWorker{}, func(o *rest.Options) { o.Limit.Log, o.Limit.Logs = limit.Log, limit.Logs })
	said := into[api.Task](t, o.ask("alice", http.MethodPost, aliceSession, map[string]any{"message": "500"}), http.StatusOK)
	path := "/api/v1/tasks/" + said.ID + "/events"
	o.ask("alice", http.MethodGet, path, nil) // ends when the log does: who reads along sees more than is kept
	events := readSSE(strings.NewReader(string(o.ask("alice", http.MethodGet, path, nil).body)))
	if len(events) < 5 || len(events) > 50 || events[len(events)-1].event != "answer" {
		t.Errorf("%d events", len(events))
	}
}

// Terms that concern the installation are refused to bound callers.
func TestTaskTermsOfOthers(t *testing.T) {
	o := newChatServer(t, &talkingWorker{}, nil)
	for _, more := range []map[string]any{{"runId": "r"}, {"sessionId": "s"}, {"hostTools": true}} {
		more["message"] = "1"
		problem(t, o.ask("alice", http.MethodPost, aliceSession, more), http.StatusForbidden, "bound_token")
		into[api.Task](t, o.ask("root", http.MethodPost, aliceSession, more), http.StatusOK)
	}
	bad := problem(t, o.ask("alice", http.MethodPost, aliceSession, map[string]any{"maxTurns": -1, "timeoutSeconds": -1, "model": "a\nb", "budget": map[string]any{"usd": -1}}), http.StatusUnprocessableEntity, "invalid_request")
	if len(bad.Errors) != 5 {
		t.Errorf("%+v", bad.Errors)
	}
}
