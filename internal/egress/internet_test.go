package egress_test

import (
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
	"log"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// internet is what the host reaches: a real DNS server that counts what it is
// asked, and servers at public addresses, each on a port of the loopback
// interface.
type internet struct {
	resolver *net.Resolver
	roots    *x509.CertPool
	ca       *x509.Certificate
	key      *ecdsa.PrivateKey

	mu      sync.Mutex
	answers map[string][]string // by name: the answers one after the other, the last one stays
	turns   map[string]int
	asked   []string
	at      map[string]string // "1.2.3.4:443" → a listener
	dialled []string
}

func newInternet(t testing.TB) *internet {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	n := &internet{answers: map[string][]string{}, turns: map[string]int{}, at: map[string]string{}, roots: x509.NewCertPool()}
	n.resolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
	go n.serveDNS(conn)
	n.makeCA(t)
	return n
}

func (n *internet) serveDNS(conn net.PacketConn) {
	b := make([]byte, 4096)
	for {
		size, from, err := conn.ReadFrom(b)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(b[:size]) != nil || len(m.Questions) != 1 {
			continue
		}
		if packed, err := n.reply(&m).Pack(); err == nil {
			_, _ = conn.WriteTo(packed, from)
		}
	}
}

// reply answers A and AAAA from the table; other names do not exist.
func (n *internet) reply(m *dnsmessage.Message) *dnsmessage.Message {
	q := m.Questions[0]
	name := strings.ToLower(strings.TrimSuffix(q.Name.String(), "."))
	n.mu.Lock()
	defer n.mu.Unlock()
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	if q.Type == dnsmessage.TypeA {
		n.asked = append(n.asked, name)
	}
	answers := n.answers[name]
	if len(answers) == 0 {
		m.RCode = dnsmessage.RCodeNameError
		return m
	}
	turn := n.turns[name] / 2 // a lookup asks for A and AAAA
	n.turns[name]++
	for text := range strings.SplitSeq(answers[min(turn, len(answers)-1)], ",") {
		n.addAnswer(m, q, text)
	}
	return m
}

func (n *internet) addAnswer(m *dnsmessage.Message, q dnsmessage.Question, text string) {
	header := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class}
	switch a, err := netip.ParseAddr(text); {
	case err != nil:
		m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.CNAMEResource{CNAME: dnsmessage.MustNewName(text + ".")}})
	case a.Is4() && q.Type == dnsmessage.TypeA:
		m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: a.As4()}})
	case a.Is6() && q.Type == dnsmessage.TypeAAAA:
		m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
	}
}

// Lookup asks the DNS server.
func (n *internet) Lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	return n.resolver.LookupNetIP(ctx, "ip", host)
}

// Connect connects to the server at an address.
func (n *internet) Connect(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	n.mu.Lock()
	n.dialled = append(n.dialled, to.String())
	at := n.at[to.String()]
	n.mu.Unlock()
	if at == "" {
		return nil, syscall.ECONNREFUSED
	}
	return new(net.Dialer).DialContext(ctx, "tcp", at)
}

// name gives a name its answers.
func (n *internet) name(name string, answers ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.answers[name] = answers
}

func (n *internet) queries() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.asked, " ")
}

func (n *internet) connections() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.dialled, " ")
}

// serve puts a server at an address.
func (n *internet) serve(t testing.TB, address string, handle func(net.Conn)) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n.mu.Lock()
	n.at[address] = l.Addr().String()
	n.mu.Unlock()
	var handlers sync.WaitGroup
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		defer handlers.Wait()
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			handlers.Go(func() { defer conn.Close(); handle(conn) })
		}
	}()
}

// serveTLS puts a TLS server with a certificate for some names at an address. It
// says which name it was asked for, and then what it is sent.
func (n *internet) serveTLS(t testing.TB, address string, names ...string) {
	t.Helper()
	config := &tls.Config{Certificates: []tls.Certificate{n.certificate(t, names...)}}
	n.serve(t, address, func(conn net.Conn) {
		server := tls.Server(conn, config)
		if server.Handshake() != nil {
			return
		}
		fmt.Fprintf(server, "%s says: ", server.ConnectionState().ServerName)
		_, _ = io.Copy(server, server)
		_ = server.CloseWrite()
	})
}

func (n *internet) makeCA(t testing.TB) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test CA"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	n.key = key
	if n.ca, err = x509.ParseCertificate(raw); err != nil {
		t.Fatal(err)
	}
	n.roots.AddCert(n.ca)
}

func (n *internet) certificate(t testing.TB, names ...string) tls.Certificate {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(2), DNSNames: names, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	raw, err := x509.CreateCertificate(rand.Reader, template, n.ca, &n.key.PublicKey, n.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: n.key}
}

// secure does a TLS handshake as a program does, which trusts the test CA.
func (n *internet) secure(conn net.Conn, name string) (*tls.Conn, error) {
	client := tls.Client(conn, &tls.Config{ServerName: name, RootCAs: n.roots})
	return client, client.Handshake()
}

// caFile returns a file with the certificate of the test CA.
func (n *internet) caFile(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: n.ca.Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// serveHTTP puts a web server at an address; with names it speaks TLS. It says
// which host was asked for.
func (n *internet) serveHTTP(t testing.TB, address string, names ...string) {
	t.Helper()
	server := &http.Server{ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s%s", r.Method, r.Host, r.URL.Path)
	})}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n.mu.Lock()
	n.at[address] = l.Addr().String()
	n.mu.Unlock()
	if len(names) > 0 {
		l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{n.certificate(t, names...)}})
	}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
}
