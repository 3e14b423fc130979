package inspect_test

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/egress/hostname"
	"github.com/atoll-run/atoll/internal/egress/inject"
	"github.com/atoll-run/atoll/internal/egress/inspect"
	"github.com/atoll-run/atoll/internal/egress/rule"
	"github.com/atoll-run/atoll/internal/outbound"
	"github.com/atoll-run/atoll/internal/secret"
)

const (
	site    = "api.example.test"
	secret1 = "ghp_0123456789abcdefABCDEF0123456789abcd"
)

// roots is a CA of the test that signs servers.
type roots struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	file        string
}

func newRoots(t *testing.T) *roots {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	check(t, err)
	certificate, err := x509.ParseCertificate(der)
	check(t, err)
	file := filepath.Join(t.TempDir(), "roots.pem")
	check(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	return &roots{certificate, key, file}
}

// sign returns a server's certificate for a name.
func (r *roots) sign(t *testing.T, name string, end time.Time) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(2), DNSNames: []string{name}, NotBefore: end.Add(-48 * time.Hour), NotAfter: end}
	der, err := x509.CreateCertificate(rand.Reader, template, r.certificate, key.Public(), r.key)
	check(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// world is an inspector, a server behind it and a listener in front of it.
type world struct {
	t         *testing.T
	roots     *roots
	inspector *inspect.Inspector
	set       *inject.Set
	dir       string
	server    string // its address
	front     string // where programs connect
	decide    func(method, path string) rule.Decision
	plain     bool // programs speak plain HTTP
	upstream  bool // so does the server
	port      int  // that programs ask for; 0: 443, or 80 without TLS
	recordErr error
	refused   func(*inspect.Refusal)

	// mu guards what tests change while connections are served, and what these leave.
	mu       sync.Mutex
	results  []error
	recorded []string
	dials    int
}

// newWorld serves programs with an inspector in front of a real TLS server.
func newWorld(t *testing.T, handler http.Handler, secrets ...inject.Secret) *world {
	t.Helper()
	w := &world{t: t, roots: newRoots(t), dir: t.TempDir()}
	w.decide = func(string, string) rule.Decision { return rule.Decision{Allow: true, Secrets: names(secrets)} }
	var err error
	w.set, err = inject.Open(w.dir, secrets)
	check(t, err)
	host, err := outbound.NewHost(outbound.Options{CAFile: w.roots.file, Getenv: func(string) string { return "" }})
	check(t, err)
	w.inspector, err = inspect.Open(inspect.Options{Dir: w.dir, Host: host, Secrets: w.set})
	check(t, err)
	if handler != nil {
		server := httptest.NewUnstartedServer(handler)
		server.TLS = &tls.Config{Certificates: []tls.Certificate{w.roots.sign(t, site, time.Now().Add(24*time.Hour))}}
		server.StartTLS()
		t.Cleanup(server.Close)
		w.server = server.Listener.Addr().String()
	}
	w.listen()
	return w
}

func names(secrets []inject.Secret) []string {
	var all []string
	for i := range secrets {
		all = append(all, secrets[i].Name)
	}
	return all
}

// github is a secret for the site.
func github() inject.Secret {
	pattern, err := hostname.ParsePattern(site)
	if err != nil {
		panic(err)
	}
	return inject.Secret{Name: "github", Value: secret.New(secret1), Hosts: []hostname.Pattern{pattern}, Header: "Authorization", Env: "GH_TOKEN"}
}

func (w *world) listen() {
	l, err := (&net.ListenConfig{}).Listen(w.t.Context(), "tcp", "127.0.0.1:0")
	check(w.t, err)
	w.front = l.Addr().String()
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { w.serve(conn) })
		}
	})
	w.t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
}

// change changes what the connections after it find.
func (w *world) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

func (w *world) serve(conn net.Conn) {
	defer conn.Close()
	w.mu.Lock()
	inspector, decide, refused, server, plain, upstream, port := w.inspector, w.decide, w.refused, w.server, w.plain, w.upstream, w.port
	w.mu.Unlock()
	target := &inspect.Target{
		Name: site, Port: cmp.Or(port, 443), PlainUpstream: upstream, Refused: refused,
		Decide: func(_ context.Context, method, target string) rule.Decision { return decide(method, target) },
		Record: func(method, path string, _ rule.Decision) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.recorded = append(w.recorded, method+" "+path)
			return w.recordErr
		},
		Dial: func(ctx context.Context) (net.Conn, error) {
			w.mu.Lock()
			w.dials++
			w.mu.Unlock()
			return new(net.Dialer).DialContext(ctx, "tcp", server)
		},
	}
	serve := inspector.ServeTLS
	if plain {
		target.Port, serve = 80, inspector.ServePlain
	}
	err := serve(context.Background(), conn, target)
	w.mu.Lock()
	w.results = append(w.results, err)
	w.mu.Unlock()
}

// result waits for the end of the nth connection and returns its refusal, nil if there
// was none.
func (w *world) result(n int) *inspect.Refusal {
	w.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		w.mu.Lock()
		if len(w.results) > n {
			err := w.results[n]
			w.mu.Unlock()
			r, ok := err.(*inspect.Refusal) //nolint:errorlint // as the caller of Serve sees it
			if err != nil && !ok {
				w.t.Fatal(err)
			}
			return r
		}
		w.mu.Unlock()
	}
	w.t.Fatal("the connection did not end")
	return nil
}

// trust is the TLS of a program that trusts the sandbox's CA.
func (w *world) trust() *tls.Config {
	files, err := w.inspector.Files("/certificates")
	check(w.t, err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(files[0].Data)
	return &tls.Config{RootCAs: pool, ServerName: site, MinVersion: tls.VersionTLS12}
}

// client is an HTTP client inside the sandbox.
func (w *world) client() *http.Client {
	transport := &http.Transport{
		TLSClientConfig: w.trust(), DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", w.front)
		},
	}
	w.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// conn is a connection of a program that writes bytes of its own.
func (w *world) conn() net.Conn {
	w.t.Helper()
	var conn net.Conn
	var err error
	if w.plain {
		conn, err = net.Dial("tcp", w.front)
	} else {
		conn, err = tls.Dial("tcp", w.front, w.trust())
	}
	check(w.t, err)
	w.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// raw sends bytes and returns everything that is answered until the end.
func (w *world) raw(text string) string {
	w.t.Helper()
	conn := w.conn()
	_, err := io.WriteString(conn, text)
	check(w.t, err)
	check(w.t, conn.SetReadDeadline(time.Now().Add(30*time.Second)))
	out, err := io.ReadAll(conn)
	if err != nil && !strings.Contains(err.Error(), "reset") {
		w.t.Fatal(err, string(out))
	}
	_ = conn.Close()
	return string(out)
}

// get makes a request and returns its status and body.
func (w *world) do(method, path, body string, header ...string) (status int, text string, got http.Header) {
	w.t.Helper()
	q, err := http.NewRequestWithContext(w.t.Context(), method, "https://"+site+path, strings.NewReader(body))
	check(w.t, err)
	for i := 0; i < len(header); i += 2 {
		q.Header.Add(header[i], header[i+1])
	}
	answer, err := w.client().Do(q)
	check(w.t, err)
	defer answer.Body.Close()
	read, err := io.ReadAll(answer.Body)
	check(w.t, err)
	return answer.StatusCode, string(read), answer.Header
}

func lines(parts ...string) string { return strings.Join(parts, "\r\n") + "\r\n" }

// placeholder is what programs inside have of the secret.
func (w *world) placeholder() string { return w.set.Environment()["GH_TOKEN"] }

// echo answers with everything of a request.
func echo(out http.ResponseWriter, q *http.Request) {
	body, _ := io.ReadAll(q.Body)
	fmt.Fprintf(out, "%s %s %s\n", q.Method, q.RequestURI, q.Host)
	_ = q.Header.Write(out)
	fmt.Fprintf(out, "\n%s", body)
}
