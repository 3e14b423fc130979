package proxy_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/model/proxy"
)

func TestAttack15_SlowlorisAndFloods(t *testing.T) {
	m := newModel(t, chat(1))
	p := newProxy(t, m.URL, func(o *proxy.Options) {
		o.HeadTimeout, o.BodyTimeout, o.KeepAlive = 200*time.Millisecond, 200*time.Millisecond, 200*time.Millisecond
		o.MaxConns = 20
	}).listen(terms())
	for name, begin := range map[string]string{
		"nothing": "", "half a head": "POST /v1/chat/completions HTTP/1.1\r\nHo", "half a body": "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{",
		"half a chunk": "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
	} {
		conn := p.dial()
		_, _ = io.WriteString(conn, begin)
		if _, err := io.ReadAll(conn); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Many idle connections: those beyond the limit are closed at once, and all
	// make room again.
	var crowd []net.Conn
	for range 60 {
		conn, err := net.Dial("unix", p.socket)
		if err != nil {
			continue // the kernel's queue is full
		}
		t.Cleanup(func() { conn.Close() })
		crowd = append(crowd, conn)
	}
	for _, conn := range crowd {
		must(t, conn.SetReadDeadline(time.Now().Add(eventually)))
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !strings.Contains(fmt.Sprint(err), "reset") {
			t.Fatal(err)
		}
	}
	until(t, "all connections are gone", func() bool { return p.Conns() == 0 })
	// A caller that is slow because the machine is may be cut off, too.
	until(t, "others are served", func() bool { a := p.post(chatPath, hello); return a.err == nil && a.StatusCode == 200 })
	if p.Held() != 0 {
		t.Errorf("%d bytes are held", p.Held())
	}
}

func TestAttack15_LargeHeadsAndBodies(t *testing.T) {
	m := newModel(t, chat(1))
	p := newProxy(t, m.URL, func(o *proxy.Options) { o.MaxBody = 4 << 20 }).listen(terms())
	p.raw("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX: "+strings.Repeat("x", 1<<20)).want(t, 431)
	p.raw("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n").want(t, 413)
	p.post(chatPath, hello).want(t, 200)
	if len(m.asked()) != 1 {
		t.Error("a request beyond the limits went on")
	}
}

func TestAttack15_MemoryOfAllBodies(t *testing.T) {
	release := make(chan struct{})
	m := newModel(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
		chat(1)(w, r)
	})
	p := newProxy(t, m.URL, func(o *proxy.Options) { o.MaxMemory = 3 << 20 }).listen(terms())
	large := `{"model":"good","messages":[{"role":"user","content":"` + strings.Repeat("x", 1<<20) + `"}]}`
	first := make(chan answer, 1)
	go func() { first <- p.post(chatPath, large) }()
	until(t, "the first request is at the upstream", func() bool { return len(m.asked()) == 1 })
	a := p.post(chatPath, large+strings.Repeat(" ", 2<<20))
	a.want(t, 503, "too many large requests")
	if a.Header.Get("X-Should-Retry") != "true" {
		t.Error("clients would not try again")
	}
	close(release)
	(<-first).want(t, 200)
	until(t, "the memory is given back", func() bool { return p.Held() == 0 })
}

func TestAttack15_OneCallerDoesNotCrowdOutAnother(t *testing.T) {
	release := make(chan struct{})
	m := newModel(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Cogni-Run-Id") == "run-1" {
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}
		chat(1)(w, r)
	})
	p := newProxy(t, m.URL, func(o *proxy.Options) { o.MaxPerCaller = 3 }).listen(terms())
	results := make(chan answer, 3)
	for range 3 {
		go func() { results <- p.post(chatPath, hello) }()
	}
	until(t, "three requests are under way", func() bool { return len(m.asked()) == 3 })
	p.post(chatPath, hello).want(t, 503, "too many requests of this caller")
	other := terms()
	other.Run = "run-2"
	p.listen(other).post(chatPath, hello).want(t, 200)
	close(release)
	for range 3 {
		(<-results).want(t, 200)
	}
}
