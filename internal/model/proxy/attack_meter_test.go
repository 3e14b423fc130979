package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/h1"
	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/model/proxy"
	"github.com/atoll-run/atoll/internal/model/proxy/dialect"
)

// endless streams words until its caller leaves.
func endless(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	for i := 0; r.Context().Err() == nil; i++ {
		if _, err := fmt.Fprintf(w, "data: {\"id\":\"1\",\"choices\":[{\"delta\":{\"content\":\"w%d \"}}]}\n\n", i); err != nil {
			return
		}
		w.(http.Flusher).Flush()
		if i > 20 {
			select {
			case <-r.Context().Done():
			case <-time.After(time.Millisecond):
			}
		}
	}
}

func TestAttack08_MeteringEvasionByAbort(t *testing.T) {
	var open atomic.Int64
	m := newModel(t, func(w http.ResponseWriter, r *http.Request) {
		open.Add(1)
		defer open.Add(-1)
		endless(w, r)
	})
	p := newProxy(t, m.URL, func(o *proxy.Options) { o.Drain = 10 * time.Millisecond }).listen(terms())
	leave := []func(net.Conn){
		func(c net.Conn) { c.Close() },
		func(c net.Conn) { _ = c.(*net.UnixConn).CloseWrite() },
	}
	const rounds = 20
	for i := range rounds {
		conn := p.dial()
		_, _ = io.WriteString(conn, request("POST", chatPath, helloStream))
		r := bufio.NewReader(conn)
		for line := ""; !strings.Contains(line, "w0"); {
			var err error
			line, err = r.ReadString('\n')
			must(t, err)
		}
		leave[i%len(leave)](conn)
	}
	until(t, "the upstream is left alone", func() bool { return open.Load() == 0 })
	c := p.spent("run-1")
	if c.Calls != rounds || c.Estimated != rounds || c.Tokens.Output < rounds || c.Tokens.Input == 0 || c.MicroUSD == 0 {
		t.Errorf("charged %+v", c)
	}
	if held := p.Held(); held != 0 {
		t.Errorf("%d bytes are held", held)
	}
}

func TestAttack08_NeverReading(t *testing.T) {
	var sent atomic.Int64
	m := newModel(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		event := "data: {\"choices\":[{\"delta\":{\"content\":\"" + strings.Repeat("x", 8<<10) + "\"}}]}\n\n"
		for r.Context().Err() == nil {
			n, err := io.WriteString(w, event)
			if err != nil {
				return
			}
			sent.Add(int64(n))
		}
	})
	p := newProxy(t, m.URL, func(o *proxy.Options) { o.WriteTimeout = 300 * time.Millisecond; o.Drain = 10 * time.Millisecond }).listen(terms())
	conn := p.dial()
	_, _ = io.WriteString(conn, request("POST", chatPath, helloStream))
	until(t, "the stream has begun", func() bool { return sent.Load() > 0 })
	c := p.spent("run-1") // waits for the end
	if c.Calls != 1 || c.Estimated != 1 || c.Tokens.Output == 0 {
		t.Errorf("charged %+v", c)
	}
	if sent.Load() > 64<<20 {
		t.Errorf("%d bytes were taken from the upstream for a caller that reads nothing", sent.Load())
	}
}

func TestAttack10_BudgetRace(t *testing.T) {
	m := newModel(t, chat(10))
	limited := terms()
	limited.Budget = grant.Budget{MicroUSD: 2000} // a request of 100 tokens reserves about 1000
	p := newProxy(t, m.URL, func(o *proxy.Options) { o.MaxPerCaller = 1000 }).listen(limited)
	const crowd = 60
	var group sync.WaitGroup
	var served, denied, other atomic.Int64
	for range crowd {
		conn := p.dial()
		group.Go(func() {
			_, _ = io.WriteString(conn, request("POST", chatPath, `{"model":"good","max_tokens":100,"messages":[]}`))
			switch a := readAnswer(bufio.NewReader(conn), "POST"); {
			case a.err == nil && a.StatusCode == 200:
				served.Add(1)
			case a.err == nil && a.StatusCode == 402 && a.Header.Get("X-Should-Retry") == "false":
				denied.Add(1)
			default:
				other.Add(1)
			}
		})
	}
	group.Wait()
	c := p.spent("run-1")
	if other.Load() != 0 || served.Load()+denied.Load() != crowd || denied.Load() == 0 || c.MicroUSD > 2000 || int64(len(m.asked())) != served.Load() {
		t.Errorf("%d served, %d denied, %d otherwise, charged %+v", served.Load(), denied.Load(), other.Load(), c)
	}
}

func TestBudgetsAreEnforcedInTheMiddleOfAStream(t *testing.T) {
	m := newModel(t, endless)
	limited := terms()
	limited.Budget = grant.Budget{Tokens: 200}
	p := newProxy(t, m.URL, nil).listen(limited)
	for path, word := range map[string]string{
		chatPath: `data: {"error":{"type":"budget_exceeded"`, "/v1/messages": "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"billing_error\"", "/v1/responses": `"code":"insufficient_quota"`,
	} {
		limited.Run = "run" + strings.ReplaceAll(path, "/", "-")
		q := p.listen(limited)
		a := q.post(path, `{"model":"good","stream":true}`)
		a.want(t, 200, word)
		if c := q.spent(limited.Run); c.Tokens.Total() < 150 || c.Tokens.Total() > 1000 {
			t.Errorf("%s: charged %+v", path, c)
		}
		q.post(path, `{"model":"good"}`).want(t, 402)
	}
}

func TestAttack19_HostileUpstream(t *testing.T) {
	var reply http.HandlerFunc
	m := newModel(t, func(w http.ResponseWriter, r *http.Request) { reply(w, r) })
	p := newProxy(t, m.URL, func(o *proxy.Options) { o.MaxAnswer = 1 << 20 }).listen(terms())
	stream := func(text ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for _, x := range text {
				_, _ = io.WriteString(w, x)
			}
		}
	}
	reply = func(w http.ResponseWriter, r *http.Request) { // one line without end
		w.Header().Set("Content-Type", "text/event-stream")
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, "data: "+strings.Repeat("x", 1<<16)); err != nil {
				return
			}
		}
	}
	p.post(chatPath, helloStream).want(t, 200, "upstream_failed")
	reply = func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 2<<20)) }
	p.post(chatPath, hello).want(t, 502)
	reply = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, `{"a":1}`)
	}
	p.post(chatPath, hello).want(t, 502)
	reply = func(w http.ResponseWriter, _ *http.Request) {
		for i := range 5000 {
			w.Header().Add("X-Bomb", fmt.Sprint(i))
		}
	}
	p.post(chatPath, hello).want(t, 502)
	before := p.spent("run-1")
	for _, usage := range []string{`{"prompt_tokens":-5,"completion_tokens":-5}`, `{"prompt_tokens":1e308,"completion_tokens":1}`, `{"prompt_tokens":"1","completion_tokens":1}`} {
		reply = stream("data: {\"choices\":[{\"delta\":{\"content\":\"hello\"}}]}\n\n", "data: {\"choices\":[],\"usage\":"+usage+"}\n\n")
		p.post(chatPath, helloStream).want(t, 200)
	}
	if c := p.spent("run-1"); c.Estimated != before.Estimated+3 || c.Tokens.Output <= before.Tokens.Output {
		t.Errorf("charged %+v after %+v", c, before)
	}
	reply = stream("data: {\"choices\":[{\"delta\":{\"content\":\"\\\"usage\\\":{\\\"prompt_tokens\\\":0,\\\"completion_tokens\\\":0}\"}}]}\n\n",
		"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":500}}\n\n")
	before = p.spent("run-1")
	p.post(chatPath, helloStream).want(t, 200)
	if c := p.spent("run-1"); c.Tokens.Output-before.Tokens.Output != 500 {
		t.Errorf("usage in the model's text was taken for the usage: %+v", c)
	}
}

func TestAttack19_EndlessAnswer(t *testing.T) {
	m := newModel(t, endless)
	p := newProxy(t, m.URL, func(o *proxy.Options) { o.Providers[0].Upstream.TotalTimeout = 3 * time.Second }).listen(terms())
	a := p.post(chatPath, helloStream)
	if a.err != nil || !strings.Contains(a.body, `"deadline"`) {
		t.Errorf("%v %.300s", a.err, a.body)
	}
}

func TestAttack22_TimeLimits(t *testing.T) {
	m := newModel(t, endless)
	p := newProxy(t, m.URL, nil)
	ctx, end := context.WithCancelCause(t.Context())
	caller, err := proxy.NewCaller(terms(), nil)
	must(t, err)
	caller.Context = ctx
	p.socket = p.serve(func(net.Conn) proxy.Admit {
		return func(*h1.Request) (*proxy.Caller, *dialect.Problem) { return caller, nil }
	})
	conn := p.dial()
	_, _ = io.WriteString(conn, request("POST", "/v1/messages", `{"model":"good","stream":true,"max_tokens":100000}`))
	r := bufio.NewReader(conn)
	for line := ""; !strings.Contains(line, "w0"); {
		line, err = r.ReadString('\n')
		must(t, err)
	}
	end(grant.ErrExpired)
	rest, err := io.ReadAll(r)
	if err != nil || !strings.Contains(string(rest), "event: error\n") || !strings.Contains(string(rest), "the run's time is over") {
		t.Errorf("%v %.300s", err, rest)
	}
	if c := p.spent("run-1"); c.Calls != 1 || c.Tokens.Output == 0 {
		t.Errorf("charged %+v", c)
	}
	if r := p.records(); len(r) != 1 || !strings.HasPrefix(fmt.Sprint(r[0]["denied"]), "deadline") {
		t.Errorf("recorded %v", r)
	}
}
