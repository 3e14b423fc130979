package ws_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/protocol"
	"github.com/atoll-run/atoll/internal/gateway/session"
	"github.com/atoll-run/atoll/internal/gateway/ws"
	"github.com/atoll-run/atoll/internal/metrics"
	"github.com/atoll-run/atoll/internal/secret"
	"github.com/atoll-run/atoll/internal/store"
	"github.com/atoll-run/atoll/internal/testkit/gatewaytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testTimeout bounds every wait of these tests.
const testTimeout = 60 * time.Second

// scriptedWorker works on tasks as their messages say:
//
//	wait NAME   waits until NAME is let go
//	fail WORDS  fails
//	tool WORDS  calls a tool before it answers
//	long N      says N thousand characters at once
//	words N     says N thousand characters, word by word
//
// and answers everything else with four words.
type scriptedWorker struct {
	gatewaytest.Transcripts
	mu    sync.Mutex
	jobs  []session.Job
	gates map[string]chan struct{}
}

func (h *scriptedWorker) gate(name string) chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gates[name] == nil {
		h.gates[name] = make(chan struct{})
	}
	return h.gates[name]
}

func (h *scriptedWorker) seen() []session.Job {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]session.Job(nil), h.jobs...)
}

func (h *scriptedWorker) Resolve(_, model string) (string, error) {
	if !strings.HasPrefix(model, "fake/") {
		return "", fmt.Errorf("there is no model %s", model)
	}
	return model, nil
}

func (h *scriptedWorker) Work(ctx context.Context, job *session.Job, tell func(session.Event)) (*session.Outcome, error) {
	h.mu.Lock()
	h.jobs = append(h.jobs, *job)
	h.mu.Unlock()
	answer := "Hello from fake model."
	verb, rest, _ := strings.Cut(job.Message, " ")
	switch verb {
	case "wait":
		tell(session.Event{Kind: session.Said, Delta: "Hello"})
		select {
		case <-h.gate(rest):
		case <-ctx.Done():
			return &session.Outcome{Text: "Hello"}, fmt.Errorf("stopped: %w", context.Cause(ctx))
		}
	case "fail":
		return nil, &session.Failure{Code: "refused", Err: errors.New(rest)}
	case "tool":
		call := &chat.Call{ID: "c1", Name: "exec", Args: `{"command":"echo hi"}`}
		tell(session.Event{Kind: session.Called, Call: call})
		tell(session.Event{Kind: session.Returned, Call: call, Result: "hi"})
	case "long":
		var n int
		_, _ = fmt.Sscan(rest, &n)
		answer = strings.Repeat("x", n*1000)
	case "words":
		var n int
		_, _ = fmt.Sscan(rest, &n)
		answer = strings.Repeat("word ", n*200)
	}
	for _, word := range strings.SplitAfter(answer, " ") {
		tell(session.Event{Kind: session.Said, Delta: word})
	}
	use := chat.Usage{Input: 11, Output: 4}
	tell(session.Event{Kind: session.Used, Usage: &use})
	h.Add(job, answer)
	model := job.Model
	if model == "" {
		model = "fake/fake-1"
	}
	return &session.Outcome{Text: answer, Model: model, Usage: use}, nil
}

type catalogue struct{}

func (catalogue) Agents(context.Context) ([]ws.Agent, error) {
	return []ws.Agent{{ID: "main", Name: "Main", Model: "fake/fake-1"}, {ID: "work", Name: "Work", Model: "fake/fake-2"}}, nil
}

func (catalogue) Models(context.Context) ([]ws.Model, error) {
	return []ws.Model{{ID: "fake-1", Name: "Fake One", Provider: "fake", ContextWindow: 64000}, {ID: "fake-2", Name: "Fake Two", Provider: "fake", ContextWindow: 64000}}, nil
}

// testGateway is a gateway in a test, with everything real but its agents.
type testGateway struct {
	*testing.T
	*ws.Server
	hand   *scriptedWorker
	tokens *access.TokenStore
	counts metrics.Registry
	url    string
	mu     sync.Mutex
	ill    error
}

const fixed = "fixed-token-of-the-test"

func gateway(t *testing.T, limits ws.Limits) *testGateway {
	t.Helper()
	return gatewayWith(t, limits, session.Limits{})
}

func gatewayWith(t *testing.T, limits ws.Limits, keep session.Limits) *testGateway {
	t.Helper()
	db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "atoll.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	p := &testGateway{T: t, hand: &scriptedWorker{gates: map[string]chan struct{}{}}}
	sessions := session.New(session.Options{DB: db, Worker: p.hand, Limits: keep, Agents: func() []string { return []string{"main", "work"} }})
	t.Cleanup(sessions.Close)
	p.tokens = access.NewTokenStore(access.TokenStoreOptions{DB: db})
	p.tokens.SetFixed(map[string]secret.Value{"test": secret.New(fixed)})
	p.Server = ws.New(ws.Options{
		Sessions: sessions, Catalogue: catalogue{}, Version: "0.0.0-test", Limits: limits, Healthy: p.healthy, Metrics: &p.counts,
		Access: &access.Access{Tokens: p.tokens, Devices: access.NewDevices(p.tokens), Limiter: access.NewLimiter(access.LimiterOptions{}), Throttle: access.NewThrottle(nil)},
	})
	srv := httptest.NewServer(p.Server)
	t.Cleanup(srv.Close)
	t.Cleanup(p.Server.Close)
	p.url = strings.Replace(srv.URL, "http", "ws", 1)
	return p
}

func (p *testGateway) healthy(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ill
}

func (p *testGateway) fallIll(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ill = err
}

// counted is the number of a series at /metrics; "" if it is not there.
func (p *testGateway) counted(series string) string {
	var all strings.Builder
	_, _ = p.counts.WriteTo(&all)
	for line := range strings.Lines(all.String()) {
		if number, ok := strings.CutPrefix(line, series+" "); ok {
			return strings.TrimSpace(number)
		}
	}
	return ""
}

// token makes a token; account "" sees all.
func (p *testGateway) token(scope access.Scope, account string) string {
	p.Helper()
	text, _, err := p.tokens.Create(p.Context(), access.Spec{Name: "test", Scope: scope, Account: account})
	if err != nil {
		p.Fatal(err)
	}
	return text.Reveal()
}

// allOf is a view of everything.
func allOf() session.View { return session.View{All: true} }

// until waits for a condition.
func (p *testGateway) until(what string, is func() bool) {
	p.Helper()
	for deadline := time.Now().Add(testTimeout); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.Fatalf("never: %s", what)
		}
	}
}

// frame is any frame.
type frame struct {
	Type    string          `json:"type"`
	ID      string          `json:"id"`
	OK      bool            `json:"ok"`
	Event   string          `json:"event"`
	Seq     int64           `json:"seq"`
	Payload json.RawMessage `json:"payload"`
	Error   *protocol.Error `json:"error"`
	raw     []byte
}

// get is a member of the payload, by its path.
func (f *frame) get(path ...string) any {
	var v any
	_ = json.Unmarshal(f.Payload, &v)
	for _, name := range path {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

func (f *frame) text(path ...string) string {
	s, _ := f.get(path...).(string)
	return s
}

// peer is a client in a test.
type peer struct {
	*testing.T
	*protocol.Conn
	version int
	count   int
	ctx     context.Context

	mu     sync.Mutex
	frames []*frame
	more   chan struct{}
	end    error
}

// hello are the parameters of connect.
type hello map[string]any

func offer(version int, token string) hello {
	h := hello{
		"minProtocol": version, "maxProtocol": version, "caps": []string{"tool-events"}, "role": "operator",
		"client": map[string]any{"id": "gateway-client", "version": "0.1.0", "platform": "linux", "mode": "backend"},
		"scopes": []string{"operator.admin", "operator.read", "operator.write"},
	}
	if token != "" {
		h["auth"] = map[string]any{"token": token}
	}
	return h
}

// dial opens a connection and reads in the background.
func (p *testGateway) dial() *peer {
	p.Helper()
	c, err := protocol.Dial(p.Context(), p.url, protocol.DialOptions{})
	if err != nil {
		p.Fatal(err)
	}
	return p.peerOn(c)
}

// peerOn is a client on a connection that was let in.
func (p *testGateway) peerOn(c *protocol.Conn) *peer {
	ctx, cancel := context.WithTimeout(p.Context(), 4*testTimeout)
	p.Cleanup(cancel)
	e := &peer{T: p.T, Conn: c, ctx: ctx, more: make(chan struct{})}
	done := make(chan struct{})
	go func() { defer close(done); e.collect() }()
	p.Cleanup(func() { c.Drop(); <-done })
	return e
}

func (e *peer) collect() {
	for {
		data, err := e.Read(e.ctx)
		e.mu.Lock()
		if err != nil {
			e.end = err
		} else {
			f := &frame{raw: data}
			_ = json.Unmarshal(data, f)
			e.frames = append(e.frames, f)
		}
		close(e.more)
		e.more = make(chan struct{})
		e.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (e *peer) so() ([]*frame, <-chan struct{}, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.frames, e.more, e.end
}

// find waits for the nth frame that fits, from 1.
func (e *peer) find(what string, n int, is func(*frame) bool) *frame {
	e.Helper()
	deadline := time.After(testTimeout)
	for {
		frames, more, end := e.so()
		left := n
		for _, f := range frames {
			if is(f) {
				if left--; left == 0 {
					return f
				}
			}
		}
		if end != nil {
			e.Fatalf("%s: the connection ended: %v\n%s", what, end, e.transcript())
		}
		select {
		case <-more:
		case <-deadline:
			e.Fatalf("%s: never came\n%s", what, e.transcript())
		}
	}
}

func (e *peer) transcript() string {
	frames, _, _ := e.so()
	var b strings.Builder
	for _, f := range frames {
		fmt.Fprintf(&b, "%.300s\n", f.raw)
	}
	return b.String()
}

// closed waits for the end of the connection.
func (e *peer) closed() (code int, reason string) {
	e.Helper()
	deadline := time.After(testTimeout)
	for {
		_, more, end := e.so()
		if end != nil {
			if e, ok := errors.AsType[websocket.CloseError](end); ok {
				code, reason = int(e.Code), e.Reason
			}
			return code, reason
		}
		select {
		case <-more:
		case <-deadline:
			e.Fatalf("the connection does not end\n%s", e.transcript())
		}
	}
}

// say sends a frame.
func (e *peer) say(v any) {
	e.Helper()
	data, ok := v.([]byte)
	if !ok {
		data, _ = json.Marshal(v)
	}
	if err := e.Write(e.ctx, data); err != nil {
		e.Fatalf("write: %v\n%s", err, e.transcript())
	}
}

// ask sends a request and returns its id.
func (e *peer) ask(method string, params any) string {
	e.Helper()
	e.count++
	id := fmt.Sprintf("q%d", e.count)
	e.say(map[string]any{"type": "req", "id": id, "method": method, "params": params})
	return id
}

// answer waits for the nth answer to a request.
func (e *peer) answer(id string, n int) *frame {
	e.Helper()
	return e.find("answer to "+id, n, func(f *frame) bool { return f.Type == "res" && f.ID == id })
}

// call asks and waits.
func (e *peer) call(method string, params any) *frame {
	e.Helper()
	return e.answer(e.ask(method, params), 1)
}

// must is a call that succeeds.
func (e *peer) must(method string, params any) *frame {
	e.Helper()
	f := e.call(method, params)
	if !f.OK {
		e.Fatalf("%s: %v", method, f.Error)
	}
	return f
}

// event waits for an event whose payload has some members.
func (e *peer) event(name string, members map[string]string) *frame {
	e.Helper()
	return e.find(fmt.Sprint("event ", name, members), 1, func(f *frame) bool {
		if f.Event != name {
			return false
		}
		for key, value := range members {
			if f.text(strings.Split(key, ".")...) != value {
				return false
			}
		}
		return true
	})
}

// connect opens a connection and says hello.
func (p *testGateway) connect(version int, token string) *peer {
	p.Helper()
	return p.connectAs(offer(version, token))
}

func (p *testGateway) connectAs(h hello) *peer {
	p.Helper()
	e := p.dial()
	e.greet(h)
	return e
}

// greet authenticates.
func (e *peer) greet(h hello) {
	e.Helper()
	e.event("connect.challenge", nil)
	e.must("connect", h)
	e.version, _ = h["minProtocol"].(int)
}

// both runs a test in both versions.
func both(t *testing.T, test func(t *testing.T, version int)) {
	t.Helper()
	for _, version := range []int{protocol.V3, protocol.V4} {
		t.Run(fmt.Sprint("v", version), func(t *testing.T) { test(t, version) })
	}
}
