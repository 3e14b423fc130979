package egress_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/config"
)

// web is a web server on port 80 of an allowed name.
func web(t *testing.T) *world {
	w := open(t, allow(t, "good.example.com:80"))
	w.net.name("good.example.com", "93.184.216.34")
	w.net.serveHTTP(t, "93.184.216.34:80")
	return w
}

// say sends text to port 80 of the allowed name and returns all answers.
func say(t *testing.T, w *world, text string) string {
	t.Helper()
	conn := w.box.dial(t, "good.example.com", 80)
	_, _ = io.WriteString(conn, text)
	_ = conn.(*net.TCPConn).CloseWrite()
	return ended(conn)
}

func TestHTTP(t *testing.T) {
	w := web(t)
	got := say(t, w, "GET /one HTTP/1.1\r\nHost: good.example.com\r\n\r\nGET /two HTTP/1.1\r\nHost: GOOD.example.com\r\nConnection: close\r\n\r\n")
	if !strings.Contains(got, "GET good.example.com/one") || !strings.Contains(strings.ToLower(got), "get good.example.com/two") {
		t.Errorf("got %s", got)
	}
	requests := w.log.of(audit.EgressRequest)
	if len(requests) != 2 || requests[0].Method != "GET" || requests[0].Mode != "http" || requests[0].Name != "good.example.com" {
		t.Errorf("records %+v", requests)
	}
	conn := w.box.proxy(t)
	fmt.Fprint(conn, "GET http://good.example.com/three HTTP/1.1\r\nHost: good.example.com\r\nProxy-Connection: keep-alive\r\n\r\n")
	if got := ended(conn); !strings.Contains(got, "GET good.example.com/three") {
		t.Errorf("by the proxy: %s", got)
	}
}

// A plain request is sent on with TLS, verified for the name.
func TestUpgradeToTLS(t *testing.T) {
	w := open(t, allow(t, `{host: "good.example.com", ports: [80], upgrade: true}`, `{host: "bad.example.com", ports: [80], upgrade: true}`))
	for _, name := range []string{"good.example.com", "bad.example.com"} {
		w.net.name(name, "93.184.216.34")
	}
	w.net.serveHTTP(t, "93.184.216.34:443", "good.example.com")
	if got := say(t, w, "GET /x HTTP/1.1\r\nHost: good.example.com\r\nConnection: close\r\n\r\n"); !strings.Contains(got, "GET good.example.com/x") {
		t.Errorf("got %s", got)
	}
	if got := w.net.connections(); got != "93.184.216.34:443" {
		t.Errorf("connected to %s", got)
	}
	conn := w.box.dial(t, "bad.example.com", 80)
	fmt.Fprint(conn, "GET /x HTTP/1.1\r\nHost: bad.example.com\r\nConnection: close\r\n\r\n")
	if got := ended(conn); !strings.HasPrefix(got, "HTTP/1.1 502") {
		t.Errorf("a certificate for another name: %s", got)
	}
}

// Host must be the name on every request, and nothing but a path is a target.
func TestAttack06_OtherHosts(t *testing.T) {
	w := web(t)
	for what, text := range map[string]string{
		"another host":  "GET / HTTP/1.1\r\nHost: evil.example.net\r\n\r\n",
		"two hosts":     "GET / HTTP/1.1\r\nHost: good.example.com\r\nHost: evil.example.net\r\n\r\n",
		"no host":       "GET / HTTP/1.1\r\n\r\n",
		"a URL":         "GET http://evil.example.net/ HTTP/1.1\r\nHost: good.example.com\r\n\r\n",
		"CONNECT":       "CONNECT evil.example.net:443 HTTP/1.1\r\nHost: good.example.com\r\n\r\n",
		"HTTP/2":        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"h2c":           "GET / HTTP/1.1\r\nHost: good.example.com\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n",
		"another port":  "GET / HTTP/1.1\r\nHost: good.example.com:8080\r\n\r\n",
		"a space":       "GET / HTTP/1.1\r\nHost : good.example.com\r\n\r\n",
		"TLS on 80":     string(inRecords(message(serverNames("good.example.com")), 16<<10)),
		"a WebSocket":   "GET / HTTP/1.1\r\nHost: good.example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
		"both lengths":  "POST / HTTP/1.1\r\nHost: good.example.com\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"1 MB of head":  "GET / HTTP/1.1\r\nHost: good.example.com\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n",
		"a folded line": "GET / HTTP/1.1\r\nHost: good.example.com\r\nX: a\r\n b\r\n\r\n",
	} {
		if got := say(t, w, text); strings.Contains(got, "HTTP/1.1 200") || strings.Contains(got, "HTTP/1.1 101") {
			t.Errorf("%s: %s", what, got)
		}
	}
	nothingLeft(t, w)
	got := say(t, w, "GET /one HTTP/1.1\r\nHost: good.example.com\r\n\r\nGET /two HTTP/1.1\r\nHost: evil.example.net\r\n\r\n")
	if !strings.Contains(got, "GET good.example.com/one") || strings.Contains(got, "/two") || strings.Contains(got, "evil.example.net/") {
		t.Errorf("the second request: %s", got)
	}
}

// A second request through the proxy on the same connection, to another host.
func TestAttack06_ProxyKeepAlive(t *testing.T) {
	w := web(t)
	conn := w.box.proxy(t)
	fmt.Fprint(conn, "GET http://good.example.com/one HTTP/1.1\r\nHost: good.example.com\r\n\r\nGET http://evil.example.net/two HTTP/1.1\r\nHost: evil.example.net\r\n\r\n")
	if got := ended(conn); !strings.Contains(got, "GET good.example.com/one") || strings.Contains(got, "two") {
		t.Errorf("got %s", got)
	}
	conn = w.box.proxy(t)
	fmt.Fprint(conn, "GET http://good.example.com/ HTTP/1.1\r\nHost: evil.example.net\r\n\r\n")
	if got := ended(conn); strings.Contains(got, "HTTP/1.1 200") {
		t.Errorf("Host is not that of the URL: %s", got)
	}
}

// A redirect is the program's to follow: its name is judged like any other.
func TestAttack11_RedirectToADeniedName(t *testing.T) {
	w := open(t, allow(t, "good.example.com:80"))
	w.net.name("good.example.com", "93.184.216.34")
	w.net.name("evil.example.net", "93.184.216.35")
	w.net.serve(t, "93.184.216.34:80", func(conn net.Conn) {
		readRequest(conn)
		fmt.Fprint(conn, "HTTP/1.1 302 Found\r\nLocation: http://evil.example.net/\r\nAlt-Svc: h3=\"evil.example.net:443\"\r\nRefresh: 0; url=http://evil.example.net/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		_, _ = io.Copy(io.Discard, conn)
	})
	got := say(t, w, "GET / HTTP/1.1\r\nHost: good.example.com\r\nConnection: close\r\n\r\n")
	if !strings.Contains(got, "302") || strings.Contains(strings.ToLower(got), "alt-svc") {
		t.Errorf("got %s", got)
	}
	if got := w.net.queries(); got != "good.example.com" {
		t.Errorf("the host asked for %s", got)
	}
}

// A server that answers without end, or lies about its answer, costs a bounded
// amount and ends its own connection only.
func TestAttack24_HostileServers(t *testing.T) {
	for what, answer := range map[string]func(net.Conn){
		"endless headers": func(c net.Conn) { fmt.Fprint(c, "HTTP/1.1 200 OK\r\n"); repeat(c, "X: y\r\n") },
		"endless line":    func(c net.Conn) { fmt.Fprint(c, "HTTP/1.1 200 OK\r\nX: "); repeat(c, "yyyyyyyy") },
		"endless 1xx":     func(c net.Conn) { repeat(c, "HTTP/1.1 103 Early Hints\r\n\r\n") },
		"two lengths": func(c net.Conn) {
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!")
		},
		"garbage": func(c net.Conn) { fmt.Fprint(c, "SSH-2.0-OpenSSH\r\n") },
	} {
		w := open(t, policy(t, func(e *config.Egress) { e.Limits.BytesIn = 32 << 20 }, "good.example.com:80"))
		w.net.name("good.example.com", "93.184.216.34")
		w.net.serve(t, "93.184.216.34:80", func(c net.Conn) { readRequest(c); answer(c) })
		got := say(t, w, "GET / HTTP/1.1\r\nHost: good.example.com\r\nConnection: close\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 502") {
			t.Errorf("%s: %.100s", what, got)
		}
		eventually(t, what+": a record of the end", func() bool { return len(w.log.of(audit.EgressClosed)) > 0 })
		if n := w.log.of(audit.EgressClosed)[0].BytesIn; n > 1<<20 {
			t.Errorf("%s: %d bytes were read", what, n)
		}
	}
}

// A length that is too long is seen as a cut connection by the program.
func TestAttack24_LyingLength(t *testing.T) {
	w := open(t, allow(t, "good.example.com:80"))
	w.net.name("good.example.com", "93.184.216.34")
	w.net.serve(t, "93.184.216.34:80", func(c net.Conn) { readRequest(c); fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello") })
	got := say(t, w, "GET /a HTTP/1.1\r\nHost: good.example.com\r\n\r\nGET /b HTTP/1.1\r\nHost: good.example.com\r\n\r\n")
	if strings.Count(got, "HTTP/1.1") != 1 {
		t.Errorf("got %q", got)
	}
}

// readRequest reads the head of a request: an answer that comes before it is another
// attack, which ends the connection.
func readRequest(c net.Conn) { _, _ = http.ReadRequest(bufio.NewReader(c)) }

// repeat writes a text until the connection breaks.
func repeat(c net.Conn, text string) {
	block := strings.Repeat(text, 1000)
	for {
		if _, err := io.WriteString(c, block); err != nil {
			return
		}
	}
}
