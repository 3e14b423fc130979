package session_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/gateway/session"
	"github.com/atoll-run/atoll/internal/store"
	"github.com/atoll-run/atoll/internal/testkit/gatewaytest"
)

func TestMain(m *testing.M) {
	if isChild() {
		child()
		return
	}
	goleak.VerifyTestMain(m)
}

// testTimeout bounds every wait of these tests.
const testTimeout = 60 * time.Second

// scriptedWorker is a worker that does what a task's message says: say WORDS
// publishes each word and answers with all of them; wait NAME waits until NAME is
// released; fail CODE fails; panic panics.
type scriptedWorker struct {
	gatewaytest.Transcripts
	mu      sync.Mutex
	jobs    []session.Job
	at      map[string]int // by session: how many work there now
	most    map[string]int
	running int
	peak    int
	gates   map[string]chan struct{}
}

func newHand() *scriptedWorker {
	return &scriptedWorker{at: map[string]int{}, most: map[string]int{}, gates: map[string]chan struct{}{}}
}

func (h *scriptedWorker) gate(name string) chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gates[name] == nil {
		h.gates[name] = make(chan struct{})
	}
	return h.gates[name]
}

func (h *scriptedWorker) letGo(name string) { close(h.gate(name)) }

func (h *scriptedWorker) seen() []session.Job {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]session.Job(nil), h.jobs...)
}

func (h *scriptedWorker) count(job *session.Job, by int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	where := job.Account + "\x00" + job.Key
	h.at[where] += by
	h.running += by
	h.most[where], h.peak = max(h.most[where], h.at[where]), max(h.peak, h.running)
	if by > 0 {
		h.jobs = append(h.jobs, *job)
	}
}

func (h *scriptedWorker) Resolve(_, model string) (string, error) {
	if !strings.HasPrefix(model, "p/") {
		return "", fmt.Errorf("there is no model %s", model)
	}
	return model, nil
}

func (h *scriptedWorker) Work(ctx context.Context, job *session.Job, tell func(session.Event)) (*session.Outcome, error) {
	h.count(job, 1)
	defer h.count(job, -1)
	verb, rest, _ := strings.Cut(job.Message, " ")
	switch verb {
	case "wait":
		select {
		case <-h.gate(rest):
		case <-ctx.Done():
			return nil, fmt.Errorf("stopped: %w", ctx.Err())
		}
	case "fail":
		return &session.Outcome{Text: "half"}, &session.Failure{Code: rest, Err: fmt.Errorf("failed with %s", rest)}
	case "panic":
		panic("as told")
	}
	for word := range strings.FieldsSeq(rest) {
		tell(session.Event{Kind: session.Said, Delta: word + " "})
	}
	use := chat.Usage{Input: 10, Output: 1}
	tell(session.Event{Kind: session.Used, Usage: &use})
	h.Add(job, rest)
	model := job.Model
	if model == "" {
		model = "p/own"
	}
	return &session.Outcome{Text: rest, Model: model, Usage: use}, nil
}

// testService is a service in a test.
type testService struct {
	*session.Service
	below
	t testing.TB
}

// below has the worker one step down, so that the service's methods come first.
type below struct{ *scriptedWorker }

func open(t testing.TB, limits session.Limits) *testService {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "atoll.db"), limits)
}

func openAt(t testing.TB, path string, limits session.Limits) *testService {
	t.Helper()
	db, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	d := &testService{below: below{newHand()}, t: t}
	d.Service = session.New(session.Options{DB: db, Worker: d.scriptedWorker, Limits: limits, Agents: func() []string { return []string{"main", "work"} }})
	t.Cleanup(func() { _ = db.Close() })
	t.Cleanup(d.Service.Close)
	return d
}

var (
	everybody = session.View{All: true}
	ann       = session.View{Account: "ann"}
	bob       = session.View{Account: "bob"}
)

// ask submits a task that must be accepted.
func (d *testService) ask(v session.View, key, id, message string) *session.Record {
	d.t.Helper()
	rec, _, err := d.Submit(d.t.Context(), v, session.Task{ID: id, Key: key, Message: message})
	if err != nil {
		d.t.Fatalf("%s: %v", id, err)
	}
	return rec
}

// over waits for the end of a task.
func (d *testService) over(v session.View, id string) *session.Record {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), testTimeout)
	defer cancel()
	rec, err := d.Wait(ctx, v, id)
	if err != nil {
		d.t.Fatalf("%s: %v", id, err)
	}
	return rec
}

// until waits for a condition.
func (d *testService) until(what string, is func() bool) {
	d.t.Helper()
	for deadline := time.Now().Add(testTimeout); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			d.t.Fatalf("never: %s", what)
		}
	}
}

// began waits until so many tasks have begun.
func (d *testService) began(n int) {
	d.t.Helper()
	d.until(fmt.Sprint(n, " tasks begin"), func() bool { return len(d.seen()) >= n })
}

// collect reads events until the task of an id has ended.
func collect(t testing.TB, sub *session.Subscription, id string) (list []session.Event) {
	t.Helper()
	deadline := time.After(testTimeout)
	for {
		select {
		case e, ok := <-sub.Events():
			if !ok {
				t.Fatal("the subscription has ended")
			}
			list = append(list, e)
			if e.Kind == session.Ended && e.Task == id {
				return list
			}
		case <-deadline:
			t.Fatalf("no end of %s after %d events", id, len(list))
		}
	}
}
