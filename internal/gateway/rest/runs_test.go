package rest_test

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/rest"
)

const runsPath = "/api/v1/ai/runs"

var async = []string{"Prefer", "respond-async"}

// start starts a run.
func (o *testServer) start(who, script string, header ...string) *api.Run {
	o.t.Helper()
	a := o.ask(who, http.MethodPost, runsPath, task(script), append(header, async...)...)
	r := into[api.Run](o.t, a, http.StatusAccepted)
	if a.Header.Get("Location") != runsPath+"/"+r.ID {
		o.t.Errorf("Location %q", a.Header.Get("Location"))
	}
	return r
}

// until waits for a run to reach a step.
func (o *testServer) until(who, id, step string) *api.Run {
	o.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if r := into[api.Run](o.t, o.ask(who, http.MethodGet, runsPath+"/"+id, nil), http.StatusOK); r.Step == step {
			return r
		}
	}
	o.t.Fatalf("%s is not %s", id, step)
	return nil
}

func TestRunAsEvents(t *testing.T) {
	o := newServer(t, nil)
	response := o.open(t.Context(), "alice", "POST "+runsPath, task("echo 'say one' >&2; echo hello"))
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatal(response.Status, response.Header)
	}
	events := readSSE(response.Body)
	first, last := events[0], events[len(events)-1]
	var receipt api.Run
	if err := json.Unmarshal([]byte(last.data), &receipt); err != nil {
		t.Fatal(err)
	}
	if first.event != "run" || first.id != "" || last.event != "receipt" || receipt.Text != "hello" || receipt.Account != "alice" || receipt.Step != api.RunOver {
		t.Errorf("%+v … %+v", first, last)
	}
	for i, e := range events[1 : len(events)-1] {
		if e.id != strconv.Itoa(i+1) {
			t.Errorf("event %d has id %q", i+1, e.id)
		}
	}
	if at := slices.IndexFunc(events, func(e sse) bool { return e.event == "text_delta" && strings.Contains(e.data, `"text":"one"`) }); at < 0 || events[len(events)-2].event != "done" {
		t.Errorf("%+v", events)
	}
}

// A reader that reconnects gets the events that it has not seen, once.
func TestEventsResume(t *testing.T) {
	o := newServer(t, nil)
	r := o.start("alice", "for i in 1 2 3; do echo \"say $i\" >&2; done; echo done")
	path := runsPath + "/" + r.ID + "/events"
	all := readSSE(strings.NewReader(string(o.ask("alice", http.MethodGet, path, nil).body)))
	rest := readSSE(strings.NewReader(string(o.ask("alice", http.MethodGet, path, nil, "Last-Event-ID", "4").body)))
	if want := slices.DeleteFunc(slices.Clone(all), func(e sse) bool { n, _ := strconv.Atoi(e.id); return n > 0 && n <= 4 }); len(rest) != len(want) || rest[1] != want[1] {
		t.Errorf("after 4: %+v, want %+v", rest, want)
	}
	page := into[api.Events](t, o.ask("alice", http.MethodGet, path+"?after=2", nil, "Accept", "application/json"), http.StatusOK)
	if len(page.Events) != len(all)-4 || page.Events[0].Seq != 3 || !page.Over {
		t.Errorf("%+v", page)
	}
	problem(t, o.ask("alice", http.MethodGet, path, nil, "Last-Event-ID", "x"), http.StatusUnprocessableEntity, "invalid_request")
}

// A run goes on when its reader disconnects.
func TestRunOutlivesItsReader(t *testing.T) {
	o := newServer(t, nil)
	ctx, leave := context.WithCancel(t.Context())
	response := o.open(ctx, "alice", "POST "+runsPath, task("sleep 0.3; echo still here"))
	leave()
	_ = response.Body.Close()
	id := strings.TrimPrefix(response.Header.Get("Location"), runsPath+"/")
	if r := o.until("alice", id, api.RunOver); r.Text != "still here" {
		t.Errorf("%+v", r)
	}
}

// A caller that disconnects is not counted as a failure of the gateway.
func TestCallerLeaves(t *testing.T) {
	o := newServer(t, nil)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, o.url+runsPath, strings.NewReader(`{"message":"sleep 1000"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Authorization": {"Bearer alice"}, "Content-Type": {"application/json"}, "Accept": {"application/json"}}
	left := make(chan struct{})
	go func() {
		defer close(left)
		if answer, err := o.client.Do(r); err == nil {
			_ = answer.Body.Close()
			t.Error("it did not wait")
		}
	}()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if list := into[api.Runs](t, o.ask("alice", http.MethodGet, runsPath+"?open=true", nil), http.StatusOK); len(list.Runs) == 1 && list.Runs[0].Step == "executing" {
			break
		}
		if time.Now().After(end) {
			t.Fatal("it did not begin")
		}
	}
	leave()
	<-left
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if text := string(o.ask("root", http.MethodGet, "/metrics", nil).body); strings.Contains(text, `status="499"`) {
			break
		} else if strings.Contains(text, `status="500"`) || time.Now().After(end) {
			t.Fatal(text)
		}
	}
}

func TestRunAnswersWhole(t *testing.T) {
	o := newServer(t, nil)
	r := into[api.Run](t, o.ask("alice", http.MethodPost, runsPath, task("echo hi"), "Accept", "application/json"), http.StatusOK)
	cost := into[api.RunCost](t, o.ask("alice", http.MethodGet, runsPath+"/"+r.ID+"/cost", nil), http.StatusOK)
	if r.Text != "hi" || r.Step != api.RunOver || cost.Bill.MicroUSD != 7 {
		t.Errorf("%+v, %+v", r, cost)
	}
}

func TestCancelRun(t *testing.T) {
	o := newServer(t, nil)
	r := o.start("alice", "sleep 1000")
	o.until("alice", r.ID, "executing")
	problem(t, o.ask("bob", http.MethodDelete, runsPath+"/"+r.ID, nil), http.StatusNotFound, "run_not_found")
	problem(t, o.ask("reader", http.MethodDelete, runsPath+"/"+r.ID, nil), http.StatusForbidden, "forbidden")
	over := into[api.Run](t, o.ask("alice", http.MethodDelete, runsPath+"/"+r.ID, nil), http.StatusOK)
	if over.Step != api.RunOver || over.Error == nil || over.Error.Code != "cancelled" {
		t.Errorf("%+v", over)
	}
	again := into[api.Run](t, o.ask("alice", http.MethodDelete, runsPath+"/"+r.ID, nil), http.StatusOK)
	if again.Error == nil || again.Error.Code != "cancelled" {
		t.Errorf("%+v", again)
	}
}

// Asking twice is asking once; a key belongs to its account.
func TestIdempotency(t *testing.T) {
	o := newServer(t, func(o *rest.Options) { o.Limits = &counter{most: 1} })
	key := []string{rest.IdempotencyKey, "build 42"}
	first, second := o.start("alice", "sleep 0.5; echo a", key...), o.start("alice", "sleep 0.5; echo a",
		append(key, "traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")...) // the same task of another trace
	if first.ID != second.ID {
		t.Errorf("%s, %s", first.ID, second.ID)
	}
	if other := o.start("bob", "echo b", key...); other.ID == first.ID || other.Account != "bob" {
		t.Errorf("%+v", other)
	}
	problem(t, o.ask("alice", http.MethodPost, runsPath, task("echo another"), append(key, async...)...), http.StatusUnprocessableEntity, "idempotency_key_used")
	o.until("alice", first.ID, api.RunOver)

	problem(t, o.ask("alice", http.MethodPost, runsPath, task("x", "id", "mine"), async...), http.StatusForbidden, "id_not_yours")
	into[api.Run](t, o.ask("root", http.MethodPost, runsPath, task("echo x", "id", "mine"), async...), http.StatusAccepted)
	o.until("root", "mine", api.RunOver)
	problem(t, o.ask("root", http.MethodPost, runsPath, task("echo y", "id", "mine"), async...), http.StatusConflict, "run_id_used")
}

// What is one account's does not exist for another.
func TestRunsOfOthers(t *testing.T) {
	o := newServer(t, nil)
	r := o.start("alice", "echo secret")
	o.until("alice", r.ID, api.RunOver)
	for _, path := range []string{"/" + r.ID, "/" + r.ID + "/events", "/" + r.ID + "/cost"} {
		problem(t, o.ask("bob", http.MethodGet, runsPath+path, nil), http.StatusNotFound, "run_not_found")
	}
	problem(t, o.ask("bob", http.MethodGet, runsPath+"?account=alice", nil), http.StatusForbidden, "other_account")
	problem(t, o.ask("bob", http.MethodPost, runsPath, task("x", "account", "alice")), http.StatusForbidden, "other_account")
	problem(t, o.ask("bob", http.MethodGet, runsPath+"?cursor="+r.ID, nil), http.StatusUnprocessableEntity, "invalid_request")
	if list := into[api.Runs](t, o.ask("bob", http.MethodGet, runsPath, nil), http.StatusOK); len(list.Runs) != 0 {
		t.Errorf("%+v", list)
	}
	if list := into[api.Runs](t, o.ask("root", http.MethodGet, runsPath+"?account=alice", nil), http.StatusOK); len(list.Runs) != 1 {
		t.Errorf("%+v", list)
	}
}

func TestRunPages(t *testing.T) {
	o := newServer(t, nil)
	var want []string
	for range 5 {
		r := o.start("alice", "true")
		o.until("alice", r.ID, api.RunOver)
		want = append(want, r.ID)
	}
	var got []string
	for cursor := ""; ; {
		page := into[api.Runs](t, o.ask("alice", http.MethodGet, runsPath+"?limit=2&cursor="+cursor, nil), http.StatusOK)
		for _, r := range page.Runs {
			got = append(got, r.ID)
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	slices.Sort(got)
	slices.Sort(want) // runs of one millisecond have no order
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestDrain(t *testing.T) {
	o := newServer(t, nil)
	short, long := o.start("alice", "sleep 0.5; echo done"), o.start("alice", "sleep 1000")
	o.until("alice", long.ID, "executing")
	o.until("alice", short.ID, "executing")
	ctx, cancel := context.WithCancel(t.Context())
	drained := make(chan struct{})
	go func() { defer close(drained); o.rest.Drain(ctx) }()
	o.until("alice", short.ID, api.RunOver)
	problem(t, o.ask("alice", http.MethodPost, runsPath, task("x")), http.StatusServiceUnavailable, "draining")
	cancel()
	<-drained
	if r := o.until("alice", long.ID, api.RunOver); r.Error == nil || r.Error.Code != "cancelled" {
		t.Errorf("%+v", r)
	}
}

func TestQuota(t *testing.T) {
	o := newServer(t, func(o *rest.Options) { o.Limits = &counter{most: 1} })
	r := o.start("alice", "sleep 1000")
	p := o.ask("alice", http.MethodPost, runsPath, task("x"))
	problem(t, p, http.StatusTooManyRequests, "quota_exceeded")
	if p.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	into[api.Run](t, o.ask("alice", http.MethodDelete, runsPath+"/"+r.ID, nil), http.StatusOK)
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) { // it is given back a little after the receipt
		a := o.ask("alice", http.MethodPost, runsPath, task("true"), async...)
		if a.StatusCode == http.StatusAccepted {
			break
		}
		if time.Now().After(end) {
			t.Fatal(a.Status)
		}
	}
}
