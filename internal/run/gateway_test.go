package run_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/gateway/protocol"
	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/run"
)

// claw is a gateway that does what a test says, and the purse of its runs.
type claw struct {
	t      *testing.T
	server *httptest.Server
	client *protocol.Client
	agent  func(s *clawSession, p *protocol.AgentParams) // the work of a run; it sends its own answers
	fork   bool                                          // it takes outboundHeaders
	open   string
	wrong  string // model that is set, whatever was asked
	full   bool   // no slot is ever free

	mu      sync.Mutex
	boot    int
	conns   map[*protocol.Conn]bool
	asked   []string // methods, with what matters of their parameters
	ended   map[string]string
	leases  map[string]*grant.Terms // by run
	back    map[string]bool         // released runs, and whether they ended
	restart bool
}

// clawSession is where an agent's answers go.
type clawSession struct {
	*claw
	conn *protocol.Conn
	id   string
}

func newClaw(t *testing.T) *claw {
	t.Helper()
	g := &claw{t: t, conns: map[*protocol.Conn]bool{}, ended: map[string]string{}, leases: map[string]*grant.Terms{}, back: map[string]bool{}}
	g.agent = func(s *clawSession, p *protocol.AgentParams) { s.say(p, "done"); s.finish(p, "done") }
	g.server = httptest.NewServer(http.HandlerFunc(g.serve))
	g.client = protocol.NewClient(protocol.ClientOptions{
		URL: strings.Replace(g.server.URL, "http", "ws", 1), RetryMin: 5 * time.Millisecond,
		Token: func(context.Context) (string, error) { return "t", nil },
	})
	t.Cleanup(func() { g.client.Close(); g.server.Close() })
	return g
}

func (g *claw) note(format string, args ...any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = append(g.asked, fmt.Sprintf(format, args...))
}

func (g *claw) notes() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.asked)
}

func (g *claw) serve(w http.ResponseWriter, r *http.Request) {
	conn, err := protocol.Accept(w, r, protocol.AcceptOptions{MaxPayload: protocol.MaxPayload})
	if err != nil {
		return
	}
	defer conn.Drop()
	ctx := context.WithoutCancel(r.Context())
	_ = conn.Write(ctx, []byte(`{"type":"event","event":"connect.challenge","payload":{"nonce":"n","ts":1}}`))
	g.mu.Lock()
	g.conns[conn] = true
	g.mu.Unlock()
	for {
		data, err := conn.Read(ctx)
		if err != nil {
			break
		}
		q := &protocol.Request{}
		if err := json.Unmarshal(data, q); err != nil {
			g.t.Error(err)
		}
		g.method(&clawSession{g, conn, q.ID}, q)
	}
	g.mu.Lock()
	delete(g.conns, conn)
	g.mu.Unlock()
}

func (g *claw) method(s *clawSession, q *protocol.Request) {
	var p struct {
		Key, Model, SessionKey, RunID string
		OutboundHeaders               map[string]string
	}
	if err := json.Unmarshal(q.Params, &p); err != nil {
		g.t.Error(err)
	}
	switch q.Method {
	case "connect":
		s.hello()
	case "sessions.patch":
		if p.OutboundHeaders != nil && !g.fork {
			s.send(map[string]any{"type": "res", "id": q.ID, "error": map[string]any{"code": "INVALID_REQUEST", "message": "at root: unexpected property 'outboundHeaders'"}})
			return
		}
		g.note("patch %s %s %s", p.Key, p.Model, p.OutboundHeaders["x-litellm-end-user-id"])
		provider, model, _ := strings.Cut(p.Model, "/")
		if g.wrong != "" {
			model = g.wrong
		}
		s.answer(map[string]any{"ok": true, "key": p.Key, "entry": map[string]any{"providerOverride": provider, "modelOverride": model}})
	case "agent":
		a := &protocol.AgentParams{}
		if err := json.Unmarshal(q.Params, a); err != nil {
			g.t.Error(err)
		}
		g.note("agent %s %s", a.SessionKey, a.Message)
		s.answer(map[string]any{"runId": a.IdempotencyKey, "status": "accepted"})
		go g.agent(s, a)
	case "chat.abort":
		g.note("abort %s", p.SessionKey)
		s.answer(map[string]any{"ok": true, "aborted": true})
	case "agent.wait":
		s.answer(map[string]any{"runId": p.RunID, "status": "error", "error": "aborted"})
	default:
		g.note("%s %s", q.Method, p.Key)
		s.answer(map[string]any{"ok": true})
	}
}

func (s *clawSession) hello() {
	s.mu.Lock()
	boot := s.boot
	s.mu.Unlock()
	s.answer(map[string]any{
		"type": "hello-ok", "protocol": 4, "server": map[string]any{"bootId": fmt.Sprint("boot-", boot)},
		"features": map[string]any{"methods": []string{"agent", "agent.wait", "sessions.patch", "chat.abort"}},
		"auth":     map[string]any{"scopes": protocol.DefaultScopes()}, "policy": map[string]any{"tickIntervalMs": 30000},
	})
}

func (s *clawSession) send(frame any) {
	data, err := json.Marshal(frame)
	if err != nil {
		s.t.Error(err)
	}
	_ = s.conn.Write(context.Background(), data) // the client may be gone
}

func (s *clawSession) answer(payload any) {
	s.send(map[string]any{"type": "res", "id": s.id, "ok": true, "payload": payload})
}

// broadcast tells every client of an agent's event, as the real gateway does.
func (s *clawSession) broadcast(payload map[string]any) {
	s.mu.Lock()
	var all []*protocol.Conn
	for conn := range s.conns {
		all = append(all, conn)
	}
	s.mu.Unlock()
	for _, conn := range all {
		(&clawSession{s.claw, conn, ""}).send(map[string]any{"type": "event", "event": "agent", "payload": payload})
	}
}

func (s *clawSession) say(p *protocol.AgentParams, word string) {
	s.broadcast(map[string]any{"runId": p.IdempotencyKey, "sessionKey": p.SessionKey, "stream": "assistant", "data": map[string]any{"delta": word}})
}

func (s *clawSession) finish(p *protocol.AgentParams, text string) {
	s.answer(map[string]any{"runId": p.IdempotencyKey, "status": "ok", "result": map[string]any{
		"payloads": []any{map[string]any{"text": text, "mediaUrl": nil}}, "meta": map[string]any{"durationMs": 1, "agentMeta": map[string]any{"model": "m"}}}})
}

// reboot ends every connection, as a gateway does that is started anew.
func (g *claw) reboot() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.boot++
	for conn := range g.conns {
		conn.Drop()
	}
}

func (g *claw) Lease(ctx context.Context, terms *grant.Terms) (string, error) {
	if g.full {
		<-ctx.Done()
		return "", &run.Failure{Code: run.NoSlot, Message: "full"}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.leases[terms.Run] = terms
	return fmt.Sprintf("cogni-%d", len(g.leases)), nil
}

func (g *claw) Release(_ context.Context, id string, ended bool) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.back[id] = ended
	return nil
}

func (g *claw) Open(context.Context) (string, error) { return g.open, nil }

func (g *claw) Restarted(context.Context) error {
	g.restart = true
	return nil
}

func (g *claw) variant() run.Variant {
	v := run.OpenClawGateway(run.GatewayOptions{Client: func(context.Context) (*protocol.Client, error) { return g.client, nil }, Keys: g})
	v.ID = "claw"
	return v
}

func (w *world) clawRunner(g *claw) *run.Runner {
	o := w.runner(nil).Options
	o.Variants, o.Finishers = []run.Variant{g.variant()}, nil
	return run.New(o)
}

func clawTask(id, account string) *run.Request {
	return &run.Request{ID: id, Variant: "claw", Account: account, Agent: "main", Model: "m", Messages: []chat.Message{{Role: chat.User, Text: "task of " + id}}}
}

// Before every task the session's model is set, to the slot of the run.
//
// Seen to fail without the call of configure in gatewayRun.work.
func TestInvariant_SESSION_MODEL_OVERRIDE(t *testing.T) {
	w, g := newWorld(t), newClaw(t)
	r, err := w.clawRunner(g).Run(t.Context(), clawTask("one", "acme"), nil)
	if err != nil || r.Error != nil || r.Text != "done" || r.Step != run.Over || r.Bill.Source != "test" {
		t.Fatalf("%+v, %v", r, err)
	}
	want := []string{"patch agent:main:acme:one cogni-1/m ", "agent agent:main:acme:one task of one", "sessions.delete agent:main:acme:one"}
	if got := g.notes(); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if terms := g.leases["one"]; terms.Account != "acme" || !slices.Equal(terms.Models, []string{"m"}) || !g.back["one"] {
		t.Errorf("%+v, %v", terms, g.back)
	}
	g.wrong = "dearer"
	r, err = w.clawRunner(g).Run(t.Context(), clawTask("two", "acme"), nil)
	if err != nil || r.Error == nil || slices.Contains(g.notes(), "agent agent:main:acme:two task of two") {
		t.Errorf("a task was given although the model is another: %+v, %v", r.Error, err)
	}
}

// Two accounts' runs at the same time hear nothing of each other, although the
// gateway tells everybody everything.
//
// Seen to fail without the comparison in gatewayRun.forwardEvents.
func TestInvariant_WS_EVENT_CAUSALITY(t *testing.T) {
	w, g := newWorld(t), newClaw(t)
	var both sync.WaitGroup
	both.Add(2)
	g.agent = func(s *clawSession, p *protocol.AgentParams) {
		both.Done()
		both.Wait()
		for i := range 20 {
			s.say(p, fmt.Sprintf("%s%d ", p.IdempotencyKey, i))
			s.broadcast(map[string]any{"runId": p.IdempotencyKey, "stream": "assistant", "data": map[string]any{"delta": "nobody's"}})
			s.broadcast(map[string]any{"runId": "other", "sessionKey": p.SessionKey, "stream": "assistant", "data": map[string]any{"delta": "another run's"}})
		}
		s.finish(p, p.IdempotencyKey)
	}
	runner := w.clawRunner(g)
	var wait sync.WaitGroup
	for _, id := range []string{"a", "b"} {
		wait.Go(func() {
			var heard strings.Builder
			r, err := runner.Run(t.Context(), clawTask(id, "account-"+id), func(e run.Event) { heard.WriteString(e.Text) })
			want := ""
			for i := range 20 {
				want += fmt.Sprintf("%s%d ", id, i)
			}
			if err != nil || r.Text != id || heard.String() != want {
				t.Errorf("%s: %v, %q, heard %q", id, err, r.Text, heard.String())
			}
		})
	}
	wait.Wait()
}

func TestGatewayRunEnds(t *testing.T) {
	for name, c := range map[string]struct {
		agent func(g *claw) func(*clawSession, *protocol.AgentParams)
		code  string
		ended bool // the argument of KeyIssuer.Release
		says  string
	}{
		"not in time": {func(*claw) func(*clawSession, *protocol.AgentParams) {
			return func(*clawSession, *protocol.AgentParams) {}
		}, "timeout", true, "abort"},
		"restarted": {func(g *claw) func(*clawSession, *protocol.AgentParams) {
			return func(*clawSession, *protocol.AgentParams) { g.reboot() }
		}, "gateway_restarted", true, "abort"},
		"fails": {func(*claw) func(*clawSession, *protocol.AgentParams) {
			return func(s *clawSession, _ *protocol.AgentParams) {
				s.send(map[string]any{"type": "res", "id": s.id, "ok": false, "error": map[string]any{"code": "UNAVAILABLE", "message": "no such model"}})
			}
		}, "agent_failed", true, ""},
		"its model fails": {func(*claw) func(*clawSession, *protocol.AgentParams) {
			return func(s *clawSession, p *protocol.AgentParams) {
				s.broadcast(map[string]any{"runId": p.IdempotencyKey, "sessionKey": p.SessionKey, "stream": "lifecycle", "data": map[string]any{"phase": "error", "error": "HTTP 400"}})
				s.finish(p, "HTTP 400")
			}
		}, "agent_error", true, ""},
		"nonsense": {func(*claw) func(*clawSession, *protocol.AgentParams) {
			return func(s *clawSession, _ *protocol.AgentParams) { s.answer(map[string]any{"status": "ok", "result": "x"}) }
		}, "invalid_output", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w, g := newWorld(t), newClaw(t)
			g.agent = c.agent(g)
			task := clawTask("r", "acme")
			if c.code == "timeout" {
				task.TimeoutMs = 300
			}
			r, err := w.clawRunner(g).Run(t.Context(), task, nil)
			if err != nil || r.Error == nil || r.Error.Code != c.code || r.Step != run.Over {
				t.Fatalf("%+v, %v", r, err)
			}
			if ended, there := g.back["r"]; !there || ended != c.ended {
				t.Errorf("the slot: released %v, ended %v", there, ended)
			}
			if c.says != "" && !slices.Contains(g.notes(), c.says+" agent:main:acme:r") {
				t.Errorf("%q", g.notes())
			}
			if g.restart != (c.code == "gateway_restarted") {
				t.Errorf("restarted: %v", g.restart)
			}
		})
	}
}

func TestGatewayRunIsCancelled(t *testing.T) {
	w, g := newWorld(t), newClaw(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	g.agent = func(*clawSession, *protocol.AgentParams) { cancel() }
	r, err := w.clawRunner(g).Run(ctx, clawTask("r", "acme"), nil)
	if err != nil || r.Error == nil || r.Error.Code != "cancelled" || !slices.Contains(g.notes(), "abort agent:main:acme:r") {
		t.Errorf("%+v, %v, %q", r, err, g.notes())
	}
}

// A gateway that takes headers gets the owner of the session in one, and needs no slot;
// a run with a budget of its own gets one all the same.
func TestGatewayThatTakesHeaders(t *testing.T) {
	w, g := newWorld(t), newClaw(t)
	g.fork, g.open = true, "cogni"
	runner := w.clawRunner(g)
	r, err := runner.Run(t.Context(), clawTask("one", "acme"), nil)
	if err != nil || r.Error != nil || !slices.Contains(g.notes(), "patch agent:main:acme:one cogni/m acme") || len(g.leases) > 0 {
		t.Errorf("%+v, %v, %q", r, err, g.notes())
	}
	poor := clawTask("two", "acme")
	poor.Budget.MicroUSD = 5
	if r, err = runner.Run(t.Context(), poor, nil); err != nil || r.Error != nil || g.leases["two"] == nil {
		t.Errorf("%+v, %v, %v", r, err, g.leases)
	}
	g.fork = false
	g.reboot()
	if r, err = runner.Run(t.Context(), clawTask("three", "acme"), nil); err != nil || r.Error != nil || g.leases["three"] == nil {
		t.Errorf("a stock gateway: %+v, %v, %v", r, err, g.leases)
	}
}

// What a process that died had begun at a gateway is ended there.
func TestGatewayRunOfTheDead(t *testing.T) {
	w, g := newWorld(t), newClaw(t)
	o := w.clawRunner(g).Options
	died := make(chan struct{})
	g.agent = func(*clawSession, *protocol.AgentParams) {}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o.Checkpoint = func(s run.Step) {
		if s == run.Answered { // the answer is not written down
			panic("killed")
		}
	}
	go func() {
		defer close(died)
		defer func() { _ = recover() }()
		_, _ = run.New(o).Run(ctx, clawTask("r", "acme"), func(e run.Event) {
			if e.Step == run.Executing {
				cancel()
			}
		})
	}()
	<-died
	o.Checkpoint = nil
	ended, err := run.New(o).Recover(t.Context())
	if err != nil || len(ended) != 1 || ended[0].Error == nil || ended[0].Error.Code != "interrupted" || !slices.Contains(g.notes(), "abort agent:main:acme:r") {
		t.Errorf("%+v, %v, %q", ended, err, g.notes())
	}
}

func TestGatewayRunWithoutASlot(t *testing.T) {
	w, g := newWorld(t), newClaw(t)
	g.full = true
	task := clawTask("r", "acme")
	task.TimeoutMs = 300
	r, err := w.clawRunner(g).Run(t.Context(), task, nil)
	if err != nil || r.Error == nil || r.Error.Code != run.NoSlot {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestGatewayRunWithoutASandbox(t *testing.T) {
	w, g := newWorld(t), newClaw(t)
	task := clawTask("r", "acme")
	task.Branch = "feature"
	if _, err := w.clawRunner(g).Run(t.Context(), task, nil); err == nil || !strings.Contains(err.Error(), "relay.container") {
		t.Errorf("%v", err)
	}
}

// Gateways make no difference between upper and lower case: two runs must not
// meet in one session because of it.
func TestSessionKeys(t *testing.T) {
	seen := map[string]bool{}
	for _, pair := range [][2]string{{"acme", "r"}, {"Acme", "r"}, {"ACME", "r"}, {"acme", "R"}, {"a:b", "r"}, {"a-b", "r"}, {"", "r"}, {strings.Repeat("x", 300), "r"}, {"acme\n", "r"}} {
		key := run.SessionKey(pair[0], pair[1])
		if seen[key] || key != strings.ToLower(key) || len(strings.Split(key, ":")) != 4 || len(key) > 300 || strings.ContainsAny(key, " \n") {
			t.Errorf("%q: %q", pair, key)
		}
		seen[key] = true
	}
	if key := run.SessionKey("acct-7", "run-42"); key != "agent:main:acct-7:run-42" {
		t.Error(key)
	}
}
