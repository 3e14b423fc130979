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

// upstream is an HTTP proxy of a company that answers CONNECT in its own way.
func upstream(t *testing.T, answer func(conn net.Conn, target string)) string {
	t.Helper()
	n := &internet{at: map[string]string{}}
	n.serve(t, "proxy", func(conn net.Conn) {
		r, err := http.ReadRequest(bufio.NewReader(conn))
		if err == nil && r.Method == http.MethodConnect {
			answer(conn, r.RequestURI)
		}
	})
	return "http://" + n.at["proxy"]
}

// behind is a server whose connections go through a proxy.
func behind(t *testing.T, proxy string) *world {
	return open(t, policy(t, func(e *config.Egress) { e.Upstream = proxy }, "good.example.com"))
}

// Through an upstream proxy names are judged here and resolved there.
func TestUpstreamProxy(t *testing.T) {
	var w *world
	var targets []string
	w = behind(t, upstream(t, func(conn net.Conn, target string) {
		targets = append(targets, target)
		up, err := net.Dial("tcp", w.net.at["93.184.216.34:443"])
		if err != nil {
			return
		}
		fmt.Fprint(conn, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(up, conn); up.Close() }()
		_, _ = io.Copy(conn, up)
	}))
	w.net.serveTLS(t, "93.184.216.34:443", "good.example.com")
	if err := reached(t, w, "good.example.com"); err != nil {
		t.Fatal(err)
	}
	if err := reached(t, w, "evil.example.net"); err == nil {
		t.Error("a refused name was reached")
	}
	if len(targets) != 1 || targets[0] != "good.example.com:443" {
		t.Errorf("the proxy was asked for %q", targets)
	}
	eventually(t, "the record", func() bool { return len(w.log.of(audit.EgressClosed)) == 1 })
	if e := w.log.of(audit.EgressClosed)[0]; !strings.HasPrefix(e.Route, "http://127.0.0.1") {
		t.Errorf("record %+v", e)
	}
	nothingLeft(t, w)
}

// A proxy that refuses, redirects or answers 200 and then lies gets nothing but
// what TLS shows to any server.
func TestAttack25_UpstreamProxyThatLies(t *testing.T) {
	for what, answer := range map[string]string{
		"407": "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n", "a redirect": "HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\n\r\n",
		"a page": "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "nothing": "", "endless headers": "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 20_000),
	} {
		w := behind(t, upstream(t, func(conn net.Conn, _ string) { fmt.Fprint(conn, answer) }))
		if err := reached(t, w, "good.example.com"); err == nil {
			t.Errorf("%s: reached", what)
		}
		nothingLeft(t, w)
	}
}

// A proxy that connects to another server is found out by the program, which
// checks the certificate.
func TestAttack25_OtherServerBehindTheProxy(t *testing.T) {
	var w *world
	w = behind(t, upstream(t, func(conn net.Conn, _ string) {
		up, err := net.Dial("tcp", w.net.at["93.184.216.66:443"])
		if err != nil {
			return
		}
		fmt.Fprint(conn, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(up, conn); up.Close() }()
		_, _ = io.Copy(conn, up)
	}))
	w.net.serveTLS(t, "93.184.216.66:443", "evil.example.net")
	if err := reached(t, w, "good.example.com"); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("got %v", err)
	}
}
