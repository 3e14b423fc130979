package gateway_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/gateway"
	"github.com/atoll-run/atoll/internal/membudget"
)

func TestWhereAGatewayListens(t *testing.T) {
	cert := writeCertificate(t, "gateway.example.org", 0o600)
	for _, test := range []struct {
		name, listen string
		trusted      []string
		tls          gateway.Certificate
		ok           bool
	}{
		{"loopback", "127.0.0.1:0", nil, gateway.Certificate{}, true},
		{"loopback of IPv6", "[::1]:0", nil, gateway.Certificate{}, true},
		{"every address in the clear", "0.0.0.0:0", nil, gateway.Certificate{}, false},
		{"every address of IPv6 in the clear", "[::]:0", nil, gateway.Certificate{}, false},
		{"no host", ":0", nil, gateway.Certificate{}, false},
		{"every address, encrypted", "0.0.0.0:0", nil, cert, true},
		{"every address, a trusted network", "0.0.0.0:0", []string{"10.255.0.0/24"}, gateway.Certificate{}, true},
		{"an address outside of the trusted network", "192.0.2.1:0", []string{"10.255.0.0/24"}, gateway.Certificate{}, false},
		{"a name", "gateway.example.org:0", nil, gateway.Certificate{}, false},
		{"no port", "127.0.0.1", nil, gateway.Certificate{}, false},
		{"no such interface", "127.0.0.1:0", []string{"nosuch0"}, gateway.Certificate{}, false},
		{"an interface", "127.0.0.1:0", []string{"lo"}, gateway.Certificate{}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, err := gateway.Open(t.Context(), gateway.Options{Listen: []string{test.listen}, Trusted: test.trusted, TLS: test.tls, Upgrades: []gateway.Route{{Path: "/", Handler: answerWith("ws")}}, REST: answerWith("rest")})
			if test.ok != (err == nil) {
				t.Errorf("%v", err)
			}
			if err != nil && errhint.Of(err) == "" {
				t.Errorf("%v has no hint", err)
			}
			if err == nil {
				_ = s.Close(t.Context())
			}
		})
	}
}

// A gateway on a wildcard address closes connections from networks that are not
// trusted when they are accepted.
func TestPlainConnectionsStayOnTheTrustedNetwork(t *testing.T) {
	outside := ownAddress(t)
	s := open(t, func(o *gateway.Options) { o.Listen, o.Trusted = []string{"0.0.0.0:0"}, []string{"203.0.113.0/24"} })
	_, port, _ := net.SplitHostPort(s.Addresses()[0])
	c, err := net.Dial("tcp", net.JoinHostPort(outside, port))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
	_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
	if text, err := io.ReadAll(c); len(text) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%q, %v", text, err)
	}
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:"+port, nil)
	if status, body := do(t, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, r); status != 200 || body != "rest nobody" {
		t.Errorf("this machine itself: %d %s", status, body)
	}
}

// ownAddress is one of this machine's that is not loopback.
func ownAddress(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && n.IP.To4() != nil {
			return n.IP.String()
		}
	}
	t.Fatal("this machine has loopback only: give it another address, with `ip link add atoll0 type dummy`")
	return ""
}

// What pages of other sites can make a browser send is refused, and what programs
// send is not.
func TestRequestsAreChecked(t *testing.T) {
	s := open(t, func(o *gateway.Options) {
		o.Origins, o.Hosts = []string{"https://dash.example.org"}, []string{"gw.internal"}
	})
	host := s.Addresses()[0]
	upgrade := handshake()
	for _, test := range []struct {
		name, path string
		headers    []string
		status     int
		want       string
	}{
		{"a program", "/", nil, 200, "rest nobody"},
		{"a program's WebSocket", "/", upgrade, 200, "ws nobody"},
		{"localhost", "/", []string{"Host: localhost:1"}, 200, "rest"},
		{"a name of ours", "/", []string{"Host: GW.internal."}, 200, "rest"},
		{"rebound", "/", []string{"Host: evil.example.org:18789"}, 421, "gateway.hosts"},
		{"rebound WebSocket", "/", append([]string{"Host: evil.example.org"}, upgrade...), 421, "gateway.hosts"},
		{"another site's page", "/", []string{"Origin: https://evil.example.org"}, 403, "allowedOrigins"},
		{"another site's WebSocket", "/", append([]string{"Origin: https://evil.example.org"}, upgrade...), 403, "allowedOrigins"},
		{"no site's page", "/", []string{"Origin: null"}, 403, ""},
		{"two origins", "/", []string{"Origin: https://dash.example.org", "Origin: https://evil.example.org"}, 403, ""},
		{"a neighbour's port", "/", []string{"Origin: http://127.0.0.1:1"}, 403, ""},
		{"an image in another page", "/", []string{"Sec-Fetch-Site: cross-site"}, 403, ""},
		{"our own page", "/", []string{"Origin: http://" + host, "Sec-Fetch-Site: same-origin"}, 200, "rest"},
		{"a configured page", "/", append([]string{"Origin: https://dash.example.org"}, upgrade...), 200, "ws"},
		{"a token in the address", "/?token=hunter2", nil, 400, "Authorization: Bearer"},
		{"in another parameter", "/?x=atollgw_ABC", nil, 400, "Authorization: Bearer"},
		{"in capitals", "/?Access_Token=x", upgrade, 400, "Authorization: Bearer"},
		{"a plain parameter", "/?limit=3", nil, 200, "rest"},
	} {
		t.Run(test.name, func(t *testing.T) {
			status, body := ask(t, s, test.path, test.headers...)
			if status != test.status || !strings.Contains(body, test.want) || strings.Contains(body, "hunter2") {
				t.Errorf("%d %s, want %d %s", status, body, test.status, test.want)
			}
		})
	}
}

// The owner of the socket needs no token: the kernel confirms the user id.
func TestTheOwnersSocket(t *testing.T) {
	path := socketPath(t)
	if err := os.WriteFile(path+".other", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	stale, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	stale.(*net.UnixListener).SetUnlinkOnClose(false) //nolint:forcetypeassert // it was asked for
	_ = stale.Close()
	open(t, func(o *gateway.Options) { o.Socket = path })
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://anything/", nil)
	if status, body := do(t, overSocket(path), r); status != 200 || body != "rest socket" {
		t.Errorf("%d %s", status, body)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// Connections that send nothing, or send slowly, are closed, and their number is
// bounded.
func TestStrangersAreBounded(t *testing.T) {
	s := open(t, func(o *gateway.Options) {
		o.Limits = gateway.Limits{Connections: 50, Header: 500 * time.Millisecond, Body: membudget.Pace{Grace: 500 * time.Millisecond}}
	})
	var all []net.Conn
	defer func() {
		for _, c := range all {
			_ = c.Close()
		}
	}()
	for range 1000 {
		c, err := net.Dial("tcp", s.Addresses()[0])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
		if n := s.Connections(); n > 50 {
			t.Fatalf("%d connections", n)
		}
	}
	until(t, "silent connections stay", func() bool { return s.Connections() == 0 })
	before := s.Accepted()
	if status, _ := ask(t, s, "/"); status != 200 || s.Accepted() != before+1 {
		t.Errorf("afterwards: %d, %d connections after %d", status, s.Accepted(), before)
	}
	c, err := net.Dial("tcp", s.Addresses()[0])
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nslow")
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || answer.StatusCode != http.StatusRequestTimeout {
		t.Errorf("a body that does not come: %v, %v", answer, err)
	}
}

// What is under way is finished; nothing new begins.
func TestDrain(t *testing.T) {
	begun, finish := make(chan struct{}), make(chan struct{})
	s := open(t, func(o *gateway.Options) {
		o.REST = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(begun)
			<-finish
			_, _ = io.WriteString(w, "finished")
		})
	})
	type answer struct {
		status int
		body   string
	}
	answers := make(chan answer, 1)
	go func() {
		status, body := ask(t, s, "/")
		answers <- answer{status, body}
	}()
	<-begun
	s.Drain()
	if c, err := net.Dial("tcp", s.Addresses()[0]); err == nil {
		_ = c.Close()
		t.Error("a new connection was taken")
	}
	close(finish)
	if got := <-answers; got.body != "finished" {
		t.Errorf("%+v", got)
	}
}
