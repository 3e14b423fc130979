package outbound_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/atoll-run/atoll/internal/outbound"
)

// names is a network with its own names. Each lookup of a name takes the next
// answer; the last one stays.
type names struct {
	mu      sync.Mutex
	answers map[string][]string
	at      map[string]string // "1.2.3.4:80" → the listener behind it
	dialled []string
}

func (n *names) Lookup(_ context.Context, host string) (list []netip.Addr, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	answers := n.answers[host]
	if len(answers) == 0 {
		return nil, fmt.Errorf("host %q: not found", host)
	}
	if len(answers) > 1 {
		n.answers[host] = answers[1:]
	}
	for text := range strings.SplitSeq(answers[0], ",") {
		list = append(list, netip.MustParseAddr(text))
	}
	return list, nil
}

func (n *names) Connect(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	n.mu.Lock()
	n.dialled = append(n.dialled, to.String())
	local := n.at[to.String()]
	n.mu.Unlock()
	if local == "" {
		return nil, errors.New("connection refused")
	}
	return new(net.Dialer).DialContext(ctx, "tcp", local)
}

// proxy is an HTTP proxy that resolves every name to one server.
type proxy struct {
	*httptest.Server
	mu     sync.Mutex
	server string   // where every request ends
	asked  []string // "CONNECT host:port", "GET http://…"
	auth   []string
}

func newProxy(t *testing.T, server string) *proxy {
	t.Helper()
	p := &proxy{server: server}
	p.Server = httptest.NewServer(http.HandlerFunc(p.serve))
	t.Cleanup(p.Close)
	return p
}

func (p *proxy) serve(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked = append(p.asked, r.Method+" "+r.RequestURI)
	p.auth = append(p.auth, r.Header.Get("Proxy-Authorization"))
	p.mu.Unlock()
	if r.Method != http.MethodConnect {
		fmt.Fprint(w, "from the proxy")
		return
	}
	up, err := net.Dial("tcp", p.server)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer up.Close()
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	fmt.Fprint(conn, "HTTP/1.1 200 Connection established\r\n\r\n")
	tunnel(conn, buffered.Reader, up)
}

func tunnel(conn net.Conn, from *bufio.Reader, up net.Conn) {
	done := make(chan struct{})
	go func() { defer close(done); _, _ = io.Copy(up, from); up.Close() }()
	_, _ = io.Copy(conn, up)
	conn.Close()
	<-done
}

func (p *proxy) requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.asked...)
}

// environment is a getenv with the given variables.
func environment(pairs ...string) func(string) string {
	values := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		values[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return values[name] }
}

// tlsServer is a server with a certificate of its own authority, for
// example.com, and the file with that authority.
func tlsServer(t *testing.T) (address, caFile string) {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto+" "+r.Host) }))
	s.EnableHTTP2 = true
	s.Config.ErrorLog = nil
	s.StartTLS()
	t.Cleanup(s.Close)
	caFile = filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(caFile, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return s.Listener.Addr().String(), caFile
}

func newHost(t *testing.T, o outbound.Options) *outbound.Host {
	t.Helper()
	h, err := outbound.NewHost(o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// get fetches an address and returns the body.
func get(t *testing.T, via http.RoundTripper, address string) (string, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: via}
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

// unknownAuthority reports whether an error is about a certificate.
func unknownAuthority(err error) bool {
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	return ok
}
