package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/h1"
	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/model/proxy"
	"github.com/atoll-run/atoll/internal/model/proxy/dialect"
	"github.com/atoll-run/atoll/internal/model/usage"
	"github.com/atoll-run/atoll/internal/secret"
	"github.com/atoll-run/atoll/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// theKey is the secret that must never be seen on the caller's side.
const theKey = "sk-THE-REAL-KEY-0123456789abcdef"

// eventually is how long a test waits for what must happen.
const eventually = 60 * time.Second

// seen is a request as the upstream saw it.
type seen struct {
	Method, URI string
	Header      http.Header
	Body        string
}

// model is an upstream: a real server that does as its handler says and
// remembers what it was asked.
type model struct {
	*httptest.Server
	mu   sync.Mutex
	asks []seen
}

func newModel(t *testing.T, handle http.HandlerFunc) *model {
	t.Helper()
	m := &model{}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m.mu.Lock()
		m.asks = append(m.asks, seen{r.Method, r.RequestURI, r.Header.Clone(), string(body)})
		m.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		handle(w, r)
	}))
	t.Cleanup(func() { m.CloseClientConnections(); m.Server.Close() })
	return m
}

// asked returns what the upstream was asked so far.
func (m *model) asked() []seen {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]seen(nil), m.asks...)
}

func (m *model) only(t *testing.T) seen {
	t.Helper()
	asks := m.asked()
	if len(asks) != 1 {
		t.Fatalf("the upstream was asked %d times", len(asks))
	}
	return asks[0]
}

// chat answers as Chat Completions do: n words, streamed if asked to.
func chat(words int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/models" {
			fmt.Fprint(w, `{"object":"list","data":[{"id":"good","secret":"x"},{"id":"other"},{"id":"team/one"}]}`)
			return
		}
		var q struct {
			Stream bool `json:"stream"`
		}
		_ = json.NewDecoder(r.Body).Decode(&q)
		if !q.Stream {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"id":"1","model":"good-1","choices":[{"message":{"content":"hello"}}],"usage":{"prompt_tokens":11,"completion_tokens":%d}}`, words)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range words {
			fmt.Fprintf(w, "data: {\"id\":\"1\",\"model\":\"good-1\",\"choices\":[{\"delta\":{\"content\":\"w%d \"}}],\"usage\":null}\n\n", i)
			w.(http.Flusher).Flush()
		}
		fmt.Fprintf(w, "data: {\"id\":\"1\",\"choices\":[],\"usage\":{\"prompt_tokens\":11,\"completion_tokens\":%d}}\n\ndata: [DONE]\n\n", words)
	}
}

// proxyKit is a server with a real ledger and a real audit log.
type proxyKit struct {
	*proxy.Server
	t      *testing.T
	dir    string
	socket string
	ledger *usage.Ledger
	log    *audit.Log
	pool   *secret.Pool
	logged *lockedBuffer
	closed bool
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// prices are what the models of tests cost: a dollar for a million tokens in,
// ten for a million out.
func prices() *usage.Prices {
	price := usage.Price{Input: usage.PerMillion(1), Output: usage.PerMillion(10)}
	return usage.NewPrices(map[string]usage.Price{"good": price, "good-1": price, "other": price})
}

func newProxy(t *testing.T, upstream string, change func(*proxy.Options)) *proxyKit {
	t.Helper()
	p := &proxyKit{t: t, dir: t.TempDir(), logged: &lockedBuffer{}}
	ctx := t.Context()
	db, err := store.Open(ctx, filepath.Join(p.dir, "atoll.db"))
	must(t, err)
	leases, err := filelock.Open(filepath.Join(p.dir, "leases"))
	must(t, err)
	p.ledger, err = usage.Open(ctx, usage.Options{Dir: filepath.Join(p.dir, "usage"), DB: db, Locks: leases, Prices: prices()})
	must(t, err)
	p.log, err = audit.Open(filepath.Join(p.dir, "audit"), audit.Options{})
	must(t, err)
	p.pool, err = secret.NewPool(ctx, secret.PoolOptions{}, secret.Literal{Value: secret.New(theKey)})
	must(t, err)
	o := proxy.Options{
		Providers: []proxy.Provider{{Upstream: proxy.Upstream{URL: upstream}, Keys: p.pool}}, Ledger: p.ledger, Audit: p.log,
		Logger: slog.New(slog.NewTextHandler(p.logged, nil)), Tick: 20 * time.Millisecond,
	}
	if change != nil {
		change(&o)
	}
	p.Server, err = proxy.New(o)
	must(t, err)
	t.Cleanup(func() {
		p.stop()
		must(t, p.ledger.Close())
		must(t, db.Close())
	})
	return p
}

// stop ends the server and the log, so that all records are written.
func (p *proxyKit) stop() {
	if p.closed {
		return
	}
	p.closed = true
	if err := p.Server.Close(); err != nil {
		p.t.Error(err)
	}
	if err := p.log.Close(); err != nil {
		p.t.Error(err)
	}
}

// listen serves callers of terms on a socket.
func (p *proxyKit) listen(terms *grant.Terms) *proxyKit {
	p.t.Helper()
	p.socket = p.serve(func(net.Conn) proxy.Admit { return admitting(p.t, terms) })
	return p
}

func (p *proxyKit) serve(authenticate proxy.Authenticate) (socket string) {
	p.t.Helper()
	dir, err := os.MkdirTemp("", "atoll-llm-") // sockets must have short paths
	must(p.t, err)
	p.t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket = filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	must(p.t, err)
	done := make(chan error, 1)
	go func() { done <- p.Serve(l, authenticate) }()
	p.t.Cleanup(func() {
		p.stop()
		must(p.t, <-done)
	})
	return socket
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// admitting admits every request as the caller of terms.
func admitting(t *testing.T, terms *grant.Terms) proxy.Admit {
	caller, err := proxy.NewCaller(terms, nil)
	if err != nil {
		t.Error(err)
	}
	return func(*h1.Request) (*proxy.Caller, *dialect.Problem) { return caller, nil }
}

// terms are those of a run that may call the model "good".
func terms() *grant.Terms {
	return &grant.Terms{
		Account: "account-1", Agent: "main", Session: "agent:main:main", Run: "run-1", Attempt: "0", Graph: "sandbox:agent", Trace: "trace-1",
		Models: []string{"good"}, Until: time.Now().Add(time.Hour),
	}
}

// dial connects to the proxy.
func (p *proxyKit) dial() net.Conn {
	p.t.Helper()
	conn, err := net.Dial("unix", p.socket)
	must(p.t, err)
	p.t.Cleanup(func() { conn.Close() })
	must(p.t, conn.SetDeadline(time.Now().Add(eventually)))
	return conn
}

// answer is what a caller got.
type answer struct {
	*http.Response
	body string
	err  error
}

// raw sends bytes and reads one answer.
func (p *proxyKit) raw(request string) answer {
	p.t.Helper()
	conn := p.dial()
	go func() { _, _ = io.WriteString(conn, request) }()
	return readAnswer(bufio.NewReader(conn), "POST")
}

func readAnswer(r *bufio.Reader, method string) (a answer) {
	a.Response, a.err = http.ReadResponse(r, &http.Request{Method: method})
	if a.err != nil {
		return a
	}
	body, err := io.ReadAll(a.Body)
	a.body, a.err = string(body), err
	return a
}

// post sends a body with further header lines.
func (p *proxyKit) post(path, body string, header ...string) answer {
	p.t.Helper()
	return p.raw(request("POST", path, body, header...))
}

func request(method, path, body string, header ...string) string {
	lines := append([]string{method + " " + path + " HTTP/1.1", "Host: localhost:8080", "Content-Type: application/json"}, header...)
	return strings.Join(lines, "\r\n") + fmt.Sprintf("\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

func (a answer) want(t *testing.T, status int, parts ...string) {
	t.Helper()
	if a.err != nil {
		t.Fatalf("no answer: %v", a.err)
	}
	if a.StatusCode != status {
		t.Fatalf("status %d, want %d: %s", a.StatusCode, status, a.body)
	}
	for _, part := range parts {
		if !strings.Contains(a.body, part) {
			t.Fatalf("%q is not in %.2000s", part, a.body)
		}
	}
}

const (
	hello       = `{"model":"good","messages":[{"role":"user","content":"hi"}]}`
	helloStream = `{"model":"good","stream":true,"messages":[{"role":"user","content":"hi"}]}`
	chatPath    = "/v1/chat/completions"
)

// records ends the proxy and returns what was recorded.
func (p *proxyKit) records() (all []map[string]any) {
	p.t.Helper()
	p.stop()
	for line := range strings.SplitSeq(p.auditText(), "\n") {
		at := strings.Index(line, "{")
		var r map[string]any
		if at >= 0 && json.Unmarshal([]byte(line[at:]), &r) == nil && r["kind"] == "model" {
			all = append(all, r)
		}
	}
	return all
}

func (p *proxyKit) auditText() string {
	p.t.Helper()
	var text strings.Builder
	files, err := filepath.Glob(filepath.Join(p.dir, "audit", "*.audit"))
	must(p.t, err)
	for _, f := range files {
		content, err := os.ReadFile(f)
		must(p.t, err)
		text.Write(content)
	}
	return text.String()
}

// spent is what a run is charged so far.
func (p *proxyKit) spent(run string) usage.Charge {
	p.t.Helper()
	until(p.t, "all requests are settled", func() bool { return p.Busy() == 0 })
	c, err := p.ledger.Spent(p.t.Context(), usage.ScopeRun, run)
	must(p.t, err)
	return c
}

// until waits for something that must come true.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), eventually)
	defer cancel()
	for !cond() {
		select {
		case <-ctx.Done():
			t.Fatal("it never came true that " + what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
