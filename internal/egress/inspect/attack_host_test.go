package inspect_test

import (
	"crypto/tls"
	"net/http"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/egress/inspect"
)

// TestAttack06_OtherHostInside asks for other hosts inside a connection for one.
func TestAttack06_OtherHostInside(t *testing.T) {
	good := lines("GET /first HTTP/1.1", "Host: "+site, "")
	for name, c := range map[string]struct{ request, status string }{
		"other Host":           {lines("GET / HTTP/1.1", "Host: evil.example", ""), "421"},
		"other port":           {lines("GET / HTTP/1.1", "Host: "+site+":8443", ""), "421"},
		"trailing dot":         {lines("GET / HTTP/1.1", "Host: "+site+".", ""), "421"},
		"two hosts":            {lines("GET / HTTP/1.1", "Host: "+site, "Host: evil.example", ""), "400"},
		"absolute form":        {lines("GET https://evil.example/ HTTP/1.1", "Host: "+site, ""), "400"},
		"absolute, same host":  {lines("GET https://"+site+"/ HTTP/1.1", "Host: "+site, ""), "400"},
		"two slashes":          {lines("GET //evil.example/ HTTP/1.1", "Host: "+site, ""), "400"},
		"CONNECT":              {lines("CONNECT evil.example:443 HTTP/1.1", "Host: "+site, ""), "400"},
		"CONNECT with a path":  {lines("CONNECT / HTTP/1.1", "Host: "+site, ""), "405"},
		"HTTP/2 preface":       {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505"},
		"h2c upgrade":          {lines("GET / HTTP/1.1", "Host: "+site, "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA", ""), "400"},
		"X-Original-URL":       {lines("GET / HTTP/1.1", "Host: "+site, "X-Original-URL: /admin", ""), "400"},
		"method override":      {lines("GET / HTTP/1.1", "Host: "+site, "X-HTTP-Method-Override: DELETE", ""), "400"},
		"dots":                 {lines("GET /a/../b HTTP/1.1", "Host: "+site, ""), "400"},
		"escaped dots":         {lines("GET /a/%2e%2E/b HTTP/1.1", "Host: "+site, ""), "400"},
		"dots behind a slash":  {lines("GET /a%2f..%2fb HTTP/1.1", "Host: "+site, ""), "400"},
		"dots with parameters": {lines("GET /a/..;x/b HTTP/1.1", "Host: "+site, ""), "400"},
		"backslash":            {lines("GET /a%5cb HTTP/1.1", "Host: "+site, ""), "400"},
		"long address":         {lines("GET /"+strings.Repeat("a", inspect.MaxTarget)+" HTTP/1.1", "Host: "+site, ""), "414"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, http.HandlerFunc(echo))
			for n, before := range []string{"", good} { // also as the second request of a connection
				out := w.raw(before + c.request)
				if r := w.result(n); r == nil || r.Kind != inspect.Protocol {
					t.Errorf("%v", r)
				}
				if before != "" {
					if !strings.Contains(out, "GET /first "+site) {
						t.Errorf("the first request was not served: %s", out)
					}
					out = out[max(0, strings.LastIndex(out, "HTTP/1.1 "+c.status)):]
				}
				if !strings.HasPrefix(out, "HTTP/1.1 "+c.status) || !strings.Contains(out, "egress: "+site) {
					t.Errorf("answered %q", out)
				}
			}
			for _, sent := range w.recorded {
				if sent != "GET /first" {
					t.Errorf("sent: %s", sent)
				}
			}
		})
	}
}

// TestAttack06_HTTP2Only has a program that offers h2 alone: it is refused by name.
func TestAttack06_HTTP2Only(t *testing.T) {
	w := newWorld(t, http.HandlerFunc(echo))
	config := w.trust()
	config.NextProtos = []string{"h2"}
	if conn, err := tls.Dial("tcp", w.front, config); err == nil {
		_ = conn.Close()
		t.Error("the handshake was made")
	}
	if r := w.result(0); r == nil || r.Kind != inspect.HTTP2Only || !strings.Contains(r.Reason, "h2") || r.Hint == "" {
		t.Errorf("%+v", r)
	}
	config.NextProtos = []string{"h2", "http/1.1"}
	conn, err := tls.Dial("tcp", w.front, config)
	check(t, err)
	defer conn.Close()
	if got := conn.ConnectionState().NegotiatedProtocol; got != "http/1.1" {
		t.Errorf("negotiated %q", got)
	}
}

// TestAttack06_PortInHost accepts the port that the connection is for, and says the
// name alone to the server.
func TestAttack06_PortInHost(t *testing.T) {
	w := newWorld(t, http.HandlerFunc(echo))
	out := w.raw(lines("GET /x HTTP/1.1", "Host: API.example.TEST:443", "Connection: close", ""))
	if !strings.Contains(out, "GET /x "+site+"\n") {
		t.Error(out)
	}
	if r := w.result(0); r != nil {
		t.Error(r)
	}
}
