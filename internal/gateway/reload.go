package gateway

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/secret"
)

// Certificate names the files of a certificate and its key.
type Certificate struct{ CertFile, KeyFile string }

func (c Certificate) isSet() bool { return c.CertFile != "" }

// loadedCertificate is a parsed certificate.
type loadedCertificate struct {
	pair *tls.Certificate
	leaf *x509.Certificate
}

func (l *loadedCertificate) covers(name string) bool { return l.leaf.VerifyHostname(name) == nil }

// load reads a certificate. Its key file must not be readable by others.
func (c Certificate) load(ctx context.Context) (*loadedCertificate, error) {
	if !c.isSet() {
		return nil, nil //nolint:nilnil // no certificate is no error
	}
	cert, err := os.ReadFile(c.CertFile)
	if err != nil {
		return nil, fmt.Errorf("certificate of the gateway: %w", err)
	}
	key, err := secret.PEM{Path: c.KeyFile}.Read(ctx)
	if err != nil {
		return nil, fmt.Errorf("certificate of the gateway: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key.Append(nil))
	key.Wipe()
	if err != nil { // the library's message may quote the key's file
		return nil, errhint.With(errors.New("certificate of the gateway: the two files are no certificate and its key"), "gateway.tls.certPath and keyPath name files in PEM")
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return nil, fmt.Errorf("certificate of the gateway: %w", err)
	}
	return &loadedCertificate{&pair, leaf}, nil
}

// Reloadable are the options that can change while the gateway runs.
type Reloadable struct {
	TLS            Certificate
	Origins, Hosts []string
}

// Reload replaces all reloadable options, or none of them. TLS cannot be switched
// on or off.
func (s *Server) Reload(r Reloadable) error {
	if r.TLS.isSet() != s.options.TLS.isSet() {
		return errhint.With(errors.New("gateway.tls: encryption is not switched on or off while the gateway runs"), "restart the gateway")
	}
	certificate, err := r.TLS.load(context.Background())
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.certificate, s.origins, s.hosts = certificate, map[string]bool{}, map[string]bool{}
	for _, origin := range r.Origins {
		s.origins[strings.ToLower(strings.TrimSuffix(origin, "/"))] = true
	}
	for _, host := range r.Hosts {
		s.hosts[hostname(host)] = true
	}
	return nil
}

// tlsConfig offers HTTP/1.1 only, which WebSocket upgrades need.
func (s *Server) tlsConfig() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		s.mu.RLock()
		defer s.mu.RUnlock()
		return s.certificate.pair, nil
	}}
}
