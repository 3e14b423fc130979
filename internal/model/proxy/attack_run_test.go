package proxy_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/model/proxy"
)

// inside is the inside of a sandbox, as far as grants are concerned: the tests
// say themselves under which grant a process was started.
type inside struct{}

func (inside) OpenGrant(context.Context, string, bool) error { return nil }
func (inside) EndGrant(context.Context, string) error        { return nil }

// process is a connection of a process that was started under a grant.
type process struct {
	net.Conn
	id string
}

func (p *process) GrantID() string { return p.id }

// wire is a listener whose connections tell the grant of their process.
type wire struct {
	net.Listener
	grant func() string
}

func (w *wire) Accept() (net.Conn, error) {
	conn, err := w.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &process{conn, w.grant()}, nil
}

// box is a sandbox with grants, whose port 8080 is the proxy's.
type box struct {
	*grant.Grants
	process string // the grant that the next caller was started under
	next    func() // says so
}

// open makes a sandbox and serves its port.
func (p *proxyKit) openBox(name string) *box {
	p.t.Helper()
	leases, err := filelock.Open(filepath.Join(p.dir, "grants-"+name))
	must(p.t, err)
	b := &box{}
	b.Grants = grant.NewGrants(name, inside{}, leases)
	dir, err := os.MkdirTemp("", "atoll-llm-") // sockets must have short paths
	must(p.t, err)
	p.t.Cleanup(func() { _ = os.RemoveAll(dir) })
	p.socket = filepath.Join(dir, "s")
	l, err := net.Listen("unix", p.socket)
	must(p.t, err)
	next := make(chan string, 100)
	w := &wire{l, func() string { return <-next }}
	go func() { _ = p.Serve(b.Listener(w, true), proxy.AuthenticateByGrant(nil, nil)) }()
	b.tell(next)
	return b
}

func (b *box) tell(next chan string) { b.next = func() { next <- b.process } }

func TestAttack20_CrossRun(t *testing.T) {
	m := newModel(t, chat(1))
	p := newProxy(t, m.URL, nil)
	b := p.openBox("one")
	ask := func() answer { b.next(); return p.post(chatPath, hello, "Authorization: Bearer "+theKey) }
	ask().want(t, 403, "no_grant")
	first, err := b.Open(t.Context(), terms())
	must(t, err)
	ask().want(t, 403, "no_grant") // a process of no run
	b.process = first.ID()
	ask().want(t, 200)
	// A connection that the first run leaves open is of no use to the second.
	b.next()
	left := p.dial()
	reader := bufio.NewReader(left)
	_, _ = io.WriteString(left, request("POST", chatPath, hello))
	readAnswer(reader, "POST").want(t, 200)
	must(t, first.Close())
	second := terms()
	second.Run, second.Account = "run-2", "account-2"
	next, err := b.Open(t.Context(), second)
	must(t, err)
	_, _ = io.WriteString(left, request("POST", chatPath, hello))
	if a := readAnswer(reader, "POST"); a.err == nil {
		t.Errorf("a connection of the run before is served: %s", a.body)
	}
	ask().want(t, 403, "no_grant") // a process left over from the first run
	b.process = next.ID()
	ask().want(t, 200)
	must(t, next.Close())
	if p.spent("run-1").Calls != 2 || p.spent("run-2").Calls != 1 {
		t.Errorf("run-1 %+v, run-2 %+v", p.spent("run-1"), p.spent("run-2"))
	}
}

func TestTwoAccountsAndTwoRunsInTurnInOneSandbox(t *testing.T) {
	m := newModel(t, chat(2))
	p := newProxy(t, m.URL, nil)
	b := p.openBox("one")
	for i := range 4 {
		who := terms()
		who.Account, who.Run = fmt.Sprint("account-", i%2), fmt.Sprint("run-", i)
		who.Models = []string{[]string{"good", "other"}[i%2]}
		g, err := b.Open(t.Context(), who)
		must(t, err)
		b.process = g.ID()
		for _, model := range []string{"good", "other"} {
			b.next()
			a := p.post(chatPath, `{"model":"`+model+`"}`, "x-litellm-end-user-id: account-9")
			if want := map[bool]int{true: 200, false: 403}[model == who.Models[0]]; a.err != nil || a.StatusCode != want {
				t.Fatalf("%s for %s: %v %s", model, who.Run, a.err, a.body)
			}
		}
		must(t, g.Close())
		q := m.asked()[i]
		once(t, &q, "X-Litellm-End-User-Id", who.Account)
		once(t, &q, "X-Cogni-Run-Id", who.Run)
		if c := p.spent(who.Run); c.Calls != 1 || c.Tokens.Output != 2 {
			t.Errorf("%s: charged %+v", who.Run, c)
		}
	}
}

// TestInvariant_IDENTITY_FROM_GRANT was seen to fail with addSaid(&terms, q)
// called in AuthenticateByGrant.
func TestInvariant_IDENTITY_FROM_GRANT(t *testing.T) {
	m := newModel(t, chat(1))
	p := newProxy(t, m.URL, nil)
	b := p.openBox("one")
	open := terms()
	open.Account, open.Run = "", ""
	g, err := b.Open(t.Context(), open)
	must(t, err)
	b.process = g.ID()
	b.next()
	p.post(chatPath, hello, "x-litellm-end-user-id: victim", "x-cogni-run-id: victim", "Authorization: Bearer atoll_x").want(t, 200)
	q := m.only(t)
	once(t, &q, "X-Litellm-End-User-Id", "atoll-main") // ours, not the caller's
	if q.Header.Get("X-Cogni-Run-Id") != "" {
		t.Errorf("the caller named itself: %v", q.Header)
	}
	must(t, g.Close())
}

var errBrokenWire = errors.New("the wire broke")

// fragile is a connection whose wire breaks after so many bytes.
type fragile struct {
	net.Conn
	left int
}

func (f *fragile) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		f.Conn.Close()
		return 0, errBrokenWire
	}
	return f.Conn.Write(b)
}

func TestARetryAfterABrokenWireIsNotBilledTwice(t *testing.T) {
	m := newModel(t, chat(100))
	p := newProxy(t, m.URL, func(o *proxy.Options) { o.WireLost = func(err error) bool { return errors.Is(err, errBrokenWire) } })
	caller := terms()
	ask := func(bytes int, body string) answer {
		here, there := net.Pipe()
		defer here.Close()
		p.Handle(&fragile{there, bytes}, func(net.Conn) proxy.Admit { return admitting(t, caller) })
		go func() { _, _ = io.WriteString(here, request("POST", chatPath, body)) }()
		return readAnswer(bufio.NewReader(here), "POST")
	}
	if a := ask(2000, helloStream); a.err == nil {
		t.Fatalf("the wire did not break: %s", a.body)
	}
	p.spent("run-1") // the answer is read to its end for the caller
	caller.Run = "run-2"
	ask(1<<20, helloStream).want(t, 200, "w99") // another run asks the same: it pays
	caller.Run = "run-1"
	ask(1<<20, `{"model":"good","stream":true}`).want(t, 200, "w99") // another question
	if a := ask(100, helloStream); a.err == nil {                    // the wire breaks again
		t.Fatalf("the wire did not break: %s", a.body)
	}
	p.spent("run-1")
	ask(1<<20, helloStream).want(t, 200, "w0 ", "w99 ", "data: [DONE]")
	if n := len(m.asked()); n != 3 {
		t.Errorf("the upstream was asked %d times", n)
	}
	if c := p.spent("run-1"); c.Calls != 2 || c.Tokens.Output != 200 || c.Estimated != 0 {
		t.Errorf("charged %+v", c)
	}
	ask(1<<20, helloStream).want(t, 200, "w99") // and the same again, which is new
	if n := len(m.asked()); n != 4 {
		t.Errorf("the upstream was asked %d times", n)
	}
}
