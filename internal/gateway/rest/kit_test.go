package rest_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"go.uber.org/goleak"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/gateway"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/rest"
	"github.com/atoll-run/atoll/internal/gateway/session"
	"github.com/atoll-run/atoll/internal/membudget"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/store"
	"github.com/atoll-run/atoll/internal/testkit/gatewaytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait of these tests.
const patience = time.Minute

// testServer is the HTTP interface with a real store and a real runner. Its agents
// are shell scripts that run without a sandbox.
type testServer struct {
	t      *testing.T
	store  run.Store
	runner *run.Runner
	rest   *rest.Server
	url    string
	client *http.Client
}

// callers are the tokens of these tests.
func callers() map[string]*access.Caller {
	return map[string]*access.Caller{
		"root":   {Token: "t-root", Scope: access.Admin},
		"alice":  {Token: "t-alice", Scope: access.Operator, Account: "alice"},
		"bob":    {Token: "t-bob", Scope: access.Operator, Account: "bob"},
		"reader": {Token: "t-reader", Scope: access.Read, Account: "alice"},
		"runner": {Token: "t-runner", Scope: access.Run, Account: "alice"},

		"approver": {Token: "t-approver", Name: "desk", Scope: access.Approvals, Account: "alice"},
	}
}

func identify(r *http.Request) (*access.Caller, error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if caller := callers()[token]; ok && caller != nil {
		return caller, nil
	}
	return nil, access.ErrDenied
}

func newServer(t *testing.T, change func(*rest.Options)) *testServer {
	t.Helper()
	return newPacedServer(t, membudget.Pace{}, change)
}

// newPacedServer returns a server whose bodies are paced as package gateway does.
func newPacedServer(t *testing.T, pace membudget.Pace, change func(*rest.Options)) *testServer {
	t.Helper()
	dir := t.TempDir()
	db, err := store.Open(t.Context(), filepath.Join(dir, "atoll.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	locks, err := filelock.Open(filepath.Join(dir, "leases"))
	if err != nil {
		t.Fatal(err)
	}
	o := &testServer{t: t, store: run.Store{DB: db}, client: &http.Client{Timeout: patience, Transport: &http.Transport{}}}
	o.runner = run.New(run.Options{Store: o.store, Locks: locks, Sandboxes: gatewaytest.Host{}, Biller: gatewaytest.Host{}, Variants: []run.Variant{gatewaytest.Script(patience)}})
	chats := session.New(session.Options{DB: db, Worker: gatewaytest.Echo{}, Names: policy.Sessions{DefaultAgent: "main"}})
	t.Cleanup(chats.Close)
	options := rest.Options{Identify: identify, Sessions: chats, Sandboxes: testSandboxes{}, Ledger: testLedger{}, Ready: func(context.Context) error { return nil }, Runs: &gatewaytest.Runs{Runner: o.runner}, Store: o.store, Agents: []rest.Catalogue{list{{GraphID: "sandbox:agent", Name: "Script", Description: "A shell script."}}}}
	if change != nil {
		change(&options)
	}
	o.rest = rest.New(options)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		gateway.PaceBody(w, r, pace)
		o.rest.ServeHTTP(w, r)
	}))
	o.url = server.URL
	t.Cleanup(func() { o.rest.Close(); server.Close(); o.client.CloseIdleConnections() })
	return o
}

// list is a catalogue.
type list []api.Agent

func (l list) Agents(context.Context) ([]api.Agent, error) { return l, nil }

// answer is what came back.
type answer struct {
	*http.Response
	body []byte
}

// ask sends a request as one of the callers.
func (o *testServer) ask(who, method, path string, body any, header ...string) answer {
	o.t.Helper()
	response := o.open(o.t.Context(), who, method+" "+path, body, header...)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		o.t.Fatal(err)
	}
	return answer{response, text}
}

// open sends a request, named by method and path, and leaves its answer to be read.
func (o *testServer) open(ctx context.Context, who, what string, body any, header ...string) *http.Response {
	o.t.Helper()
	method, path, _ := strings.Cut(what, " ")
	var content io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		content = strings.NewReader(b)
	default:
		text, err := json.Marshal(b)
		if err != nil {
			o.t.Fatal(err)
		}
		content = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, o.url+path, content)
	if err != nil {
		o.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+who)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := o.client.Do(r)
	if err != nil {
		o.t.Fatal(err)
	}
	return response
}

// into reads an answer of the given status.
func into[T any](t *testing.T, a answer, status int) *T {
	t.Helper()
	v := new(T)
	if err := json.Unmarshal(a.body, v, json.RejectUnknownMembers(true)); err != nil || a.StatusCode != status {
		t.Fatalf("%s %s: %d, want %d: %s (%v)", a.Request.Method, a.Request.URL.Path, a.StatusCode, status, a.body, err)
	}
	return v
}

// problem reads a problem, and checks what all of them have.
func problem(t *testing.T, a answer, status int, code string) api.Problem {
	t.Helper()
	p := into[api.Problem](t, a, status)
	if p.Code != code || p.Status != status || p.Title == "" || p.Type == "" || p.RequestID != a.Header.Get(rest.RequestID) || a.Header.Get("Content-Type") != api.ProblemType {
		t.Errorf("%s %s: %s; want %d %s", a.Request.Method, a.Request.URL.Path, a.body, status, code)
	}
	return *p
}

// sse is one event of a stream.
type sse struct{ id, event, data string }

func readSSE(r io.Reader) (events []sse) {
	var e sse
	for lines := bufio.NewScanner(r); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			e.id = value
		case "event":
			e.event = value
		case "data":
			e.data = value
		case "":
			if e != (sse{}) {
				events = append(events, e)
			}
			e = sse{}
		}
	}
	return events
}

// counter is a limiter that lets so many runs in at once.
type counter struct {
	mu   sync.Mutex
	most int
	now  map[string]int
	deny error
}

func (c *counter) CheckSandboxes(context.Context, *access.Caller) error { return nil }
func (c *counter) Quota(*access.Caller) access.Quota                    { return access.Quota{} }
func (c *counter) Admit(*access.Caller) error                           { return c.deny }
func (c *counter) Begin(_ context.Context, caller *access.Caller) (func(), error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now == nil {
		c.now = map[string]int{}
	}
	if c.now[caller.Token] >= c.most {
		return nil, access.ErrQuota
	}
	c.now[caller.Token]++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.now[caller.Token]--
	}, nil
}

func task(script string, more ...any) map[string]any {
	body := map[string]any{"message": script}
	for i := 0; i < len(more); i += 2 {
		body[fmt.Sprint(more[i])] = more[i+1]
	}
	return maps.Clone(body)
}
