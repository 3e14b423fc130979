package gateway_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/gateway"
)

// writeCertificate makes a certificate for a name and for this machine.
func writeCertificate(t *testing.T, name string, mode os.FileMode) gateway.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	c := gateway.Certificate{CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}
	for path, block := range map[string]*pem.Block{c.CertFile: {Type: "CERTIFICATE", Bytes: der}, c.KeyFile: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), mode); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// trusting returns a client that trusts a certificate.
func trusting(t *testing.T, c gateway.Certificate) *http.Client {
	t.Helper()
	text, err := os.ReadFile(c.CertFile)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
}

func TestEncryption(t *testing.T) {
	first, second := writeCertificate(t, "gateway.example.org", 0o600), writeCertificate(t, "other.example.org", 0o600)
	s := open(t, func(o *gateway.Options) { o.Listen, o.TLS = []string{"0.0.0.0:0"}, first })
	_, port, _ := net.SplitHostPort(s.Addresses()[0])
	request := func(host string) *http.Request {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://127.0.0.1:"+port, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		return r
	}
	if status, body := do(t, trusting(t, first), request("gateway.example.org")); status != 200 {
		t.Errorf("the certificate's name: %d %s", status, body)
	}
	if status, _ := do(t, trusting(t, first), request("evil.example.org")); status != 421 {
		t.Errorf("another name: %d", status)
	}
	if err := s.Reload(gateway.Reloadable{TLS: second}); err != nil {
		t.Fatal(err)
	}
	if status, body := do(t, trusting(t, second), request("other.example.org")); status != 200 {
		t.Errorf("after a reload: %d %s", status, body)
	}
	if err := s.Reload(gateway.Reloadable{}); err == nil || !strings.Contains(err.Error(), "while the gateway runs") {
		t.Errorf("switched off: %v", err)
	}
	open := writeCertificate(t, "other.example.org", 0o644)
	if err := s.Reload(gateway.Reloadable{TLS: open}); err == nil || !strings.Contains(err.Error(), "lets others at it") {
		t.Errorf("a key that others can read: %v", err)
	}
	if status, _ := do(t, trusting(t, second), request("other.example.org")); status != 200 {
		t.Errorf("after a reload that failed: %d", status)
	}
}
