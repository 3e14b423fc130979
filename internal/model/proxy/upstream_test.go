package proxy_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/atoll-run/atoll/internal/model/proxy"
	"github.com/atoll-run/atoll/internal/outbound"
)

// rawUpstream answers every connection with the same bytes, once a whole request
// has come, and closes it. It returns the heads of the requests.
func rawUpstream(t *testing.T, answer string) (address string, heads <-chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	seen := make(chan string, 10)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			seen <- readHead(conn)
			_, _ = io.WriteString(conn, answer)
			conn.Close()
		}
	}()
	return "http://" + l.Addr().String(), seen
}

// readHead reads a request with the body hello and returns its head.
func readHead(conn net.Conn) string {
	r := bufio.NewReader(conn)
	var head strings.Builder
	length := 0
	for {
		line, err := r.ReadString('\n')
		if err != nil || line == "\r\n" {
			break
		}
		_, _ = fmt.Sscanf(line, "Content-Length: %d", &length)
		head.WriteString(line)
	}
	_, _ = io.CopyN(io.Discard, r, int64(length))
	return head.String()
}

// Nothing is in a request to the upstream but what is meant to be there.
func TestTheFieldsOfARequestAreAllOurs(t *testing.T) {
	url, heads := rawUpstream(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
	p := newProxy(t, url, nil).listen(terms())
	p.post(chatPath, hello, "X-Forwarded-For: 1.2.3.4", "Accept-Encoding: gzip", "User-Agent: me", "OpenAI-Beta: assistants=v2").want(t, 200)
	lines := strings.Split(strings.TrimSpace(<-heads), "\r\n")
	if lines[0] != "POST /v1/chat/completions HTTP/1.1" {
		t.Errorf("got %q", lines[0])
	}
	var names []string
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ": ")
		names = append(names, strings.ToLower(name))
		switch strings.ToLower(name) {
		case "user-agent":
			if value != "atoll" {
				t.Errorf("User-Agent is %q", value)
			}
		case "accept-encoding":
			if value != "identity" {
				t.Errorf("Accept-Encoding is %q", value)
			}
		}
	}
	slices.Sort(names)
	want := []string{
		"accept", "accept-encoding", "authorization", "content-length", "content-type", "host", "openai-beta", "user-agent",
		"x-cogni-run-id", "x-litellm-call-id", "x-litellm-end-user-id", "x-litellm-spend-logs-metadata",
	}
	if !slices.Equal(names, want) {
		t.Errorf("sent %q", names)
	}
}

// An upstream that does not speak HTTP, or breaks off, is noticed.
func TestAnswersThatAreNone(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":            "",
		"not HTTP":           "SSH-2.0-OpenSSH\r\n\r\n",
		"another protocol":   "HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
		"no status":          "HTTP/1.1 9999 OK\r\n\r\n",
		"a strange status":   "HTTP/1.1 777 OK\r\nContent-Length: 2\r\n\r\n{}",
		"half a head":        "HTTP/1.1 200 OK\r\nContent-Le",
		"half a body":        "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{}",
		"half of its chunks": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
		"a head too large":   "HTTP/1.1 200 OK\r\n" + strings.Repeat("A: b\r\n", 20000) + "\r\n",
		"two lengths":        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
		"endless interim":    strings.Repeat("HTTP/1.1 103 Hint\r\nA: "+strings.Repeat("b", 100)+"\r\n\r\n", 2000),
	} {
		t.Run(name, func(t *testing.T) {
			url, _ := rawUpstream(t, text)
			newProxy(t, url, nil).listen(terms()).post(chatPath, hello).want(t, 502, "upstream_failed")
		})
	}
}

func TestAStreamThatBreaksOffIsToldToTheCaller(t *testing.T) {
	event := "data: {\"choices\":[{\"delta\":{\"content\":\"one\"}}]}\n\n"
	url, _ := rawUpstream(t, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(event), event))
	p := newProxy(t, url, nil).listen(terms())
	p.post(chatPath, helloStream).want(t, 200, "one", "the model's answer broke off")
	if c := p.spent("run-1"); c.Calls != 1 || c.Estimated != 1 {
		t.Errorf("charged %+v", c)
	}
}

// secureModel is a model behind TLS that speaks HTTP/2.
func secureModel(t *testing.T, handle http.HandlerFunc) (s *httptest.Server, trusted *tls.Config) {
	t.Helper()
	s = httptest.NewUnstartedServer(handle)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return s, &tls.Config{RootCAs: roots}
}

func TestUpstreamsAreSpokenToInHTTP2(t *testing.T) {
	var protocol atomic.Value
	breaks := false
	s, trusted := secureModel(t, func(w http.ResponseWriter, r *http.Request) {
		protocol.Store(r.Proto)
		if breaks {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"one\"}}]}\n\n")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
		chat(5)(w, r)
	})
	p := newProxy(t, s.URL, func(o *proxy.Options) { o.Providers[0].Upstream.TLS = trusted }).listen(terms())
	p.post(chatPath, hello).want(t, 200, "hello")
	p.post(chatPath, helloStream).want(t, 200, "w4", "[DONE]")
	if protocol.Load() != "HTTP/2.0" {
		t.Errorf("spoken in %v", protocol.Load())
	}
	large := `{"model":"good","messages":[{"role":"user","content":"` + strings.Repeat("x", 1<<20) + `"}]}`
	p.post(chatPath, large).want(t, 200, "hello")
	breaks = true
	p.post(chatPath, helloStream).want(t, 200, "one", "the model's answer broke off")
}

// A caller that leaves ends its request at the upstream, also in HTTP/2, where
// others share the connection.
func TestCallersThatLeaveEndTheirRequestsInHTTP2(t *testing.T) {
	ended := make(chan struct{}, 1)
	s, trusted := secureModel(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"one\"}}]}\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		ended <- struct{}{}
	})
	p := newProxy(t, s.URL, func(o *proxy.Options) { o.Providers[0].Upstream.TLS = trusted; o.Drain = 1 }).listen(terms())
	conn := p.dial()
	_, _ = io.WriteString(conn, request("POST", chatPath, helloStream))
	if _, err := conn.Read(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	<-ended
}

// The proxy of the environment is asked for a tunnel, by name, and is not sent
// the model's key.
func TestUpstreamsBehindAProxy(t *testing.T) {
	s, trusted := secureModel(t, chat(2))
	asked := make(chan *http.Request, 1)
	tunnels := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Clone(t.Context())
		up, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(up, conn); up.Close() }()
		_, _ = io.Copy(conn, up)
		conn.Close()
	}))
	t.Cleanup(tunnels.Close)
	host, err := outbound.NewHost(outbound.Options{Getenv: func(name string) string {
		return map[string]string{"HTTPS_PROXY": tunnels.URL}[name]
	}})
	must(t, err)
	p := newProxy(t, "https://example.com", func(o *proxy.Options) {
		o.Providers[0].Upstream.Host, o.Providers[0].Upstream.TLS = host, trusted
	}).listen(terms())
	p.post(chatPath, helloStream).want(t, 200, "w1", "[DONE]")
	r := <-asked
	if r.Method != http.MethodConnect || r.Host != "example.com:443" || r.Header.Get("Authorization") != "" {
		t.Errorf("the proxy was asked %s %s %v", r.Method, r.Host, r.Header)
	}
}
