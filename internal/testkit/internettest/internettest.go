// Package internettest is a small internet on the loopback interface: a web server that
// has every name, and an HTTP proxy by which a host reaches it.
package internettest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/loopback"
)

// Internet is one that runs until it is closed.
type Internet struct {
	Proxy string // http://ADDRESS, for sandbox.egress.upstream
	CA    []byte // PEM of the certificate that signs those of the web server

	root    *x509.Certificate
	key     *ecdsa.PrivateKey
	secure  net.Listener
	plain   net.Listener
	servers []*http.Server
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	work    sync.WaitGroup

	mu     sync.Mutex
	asked  []string          // NAME:PORT of every connection through the proxy
	routes map[string]string // addresses of other servers, by port
	only   []string          // names that the web server has; nil are all
}

// Start starts one whose web server answers with the handler.
func Start(handler http.Handler) (*Internet, error) {
	n := &Internet{}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	if err := n.makeCA(); err != nil {
		return nil, err
	}
	var err error
	var proxy net.Listener
	for _, l := range []*net.Listener{&n.secure, &n.plain, &proxy} {
		if *l, err = (&net.ListenConfig{}).Listen(context.Background(), "tcp4", "127.0.0.1:0"); err != nil {
			return nil, err
		}
	}
	n.Proxy = "http://" + proxy.Addr().String()
	secure := tls.NewListener(n.secure, &tls.Config{GetCertificate: n.certificate, MinVersion: tls.VersionTLS12})
	n.serve(secure, handler)
	n.serve(n.plain, handler)
	n.serve(proxy, http.HandlerFunc(n.connect))
	return n, nil
}

func (n *Internet) serve(l net.Listener, h http.Handler) {
	s := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	n.servers = append(n.servers, s)
	n.work.Go(func() { _ = s.Serve(l) })
}

// Close ends it, with all connections.
func (n *Internet) Close() error {
	defer n.work.Wait()
	n.cancel()
	var problems []error
	for _, s := range n.servers {
		problems = append(problems, s.Close())
	}
	return errors.Join(problems...)
}

// Asked returns the NAME:PORT of every connection that was asked of the proxy.
func (n *Internet) Asked() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string{}, n.asked...)
}

// Secure returns the address of the web server with TLS, for those who reach it directly.
func (n *Internet) Secure() string { return n.secure.Addr().String() }

// Route has a port of every name lead to another server than the web server.
func (n *Internet) Route(port, address string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.routes == nil {
		n.routes = map[string]string{}
	}
	n.routes[port] = address
}

// Only has the web server have these names and no others, which lead to the servers that
// this machine reaches by them.
func (n *Internet) Only(names ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.only = names
}

// target notes what a client asks for and returns the address of its server: port 80
// is plain, others have TLS.
func (n *Internet) target(host string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked = append(n.asked, host)
	name, port, _ := net.SplitHostPort(host)
	if n.only != nil && !slices.Contains(n.only, name) {
		return host
	}
	if address := n.routes[port]; address != "" {
		return address
	}
	if port == "80" {
		return n.plain.Addr().String()
	}
	return n.secure.Addr().String()
}

// connect joins a client with a server.
func (n *Internet) connect(w http.ResponseWriter, r *http.Request) {
	n.work.Add(1)
	defer n.work.Done()
	target := n.target(r.Host)
	if r.Method != http.MethodConnect {
		http.Error(w, "CONNECT only", http.StatusMethodNotAllowed)
		return
	}
	server, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", target)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	client, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		server.Close()
		return
	}
	_, _ = io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n")
	loopback.Join(n.ctx, client, server)
}

func (n *Internet) makeCA() (err error) {
	if n.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return err
	}
	n.root = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a test's authority"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, n.root, n.root, &n.key.PublicKey, n.key)
	n.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return err
}

// certificate makes one for the name that the client asks for.
func (n *Internet) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if hello.ServerName == "" {
		return nil, errors.New("no server name")
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: hello.ServerName}, DNSNames: []string{hello.ServerName},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, n.root, &n.key.PublicKey, n.key)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: n.key}, err
}

// Hello answers every request with its method, its host and its path.
func Hello() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s%s\n", r.Method, r.Host, r.URL.Path)
	})
}
