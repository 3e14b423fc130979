package inspect

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"sync"
	"time"
)

const (
	// leafLife is how long a certificate for a name is good for.
	leafLife = 7 * 24 * time.Hour
	// leafRenewal is how long before its end a certificate is made anew.
	leafRenewal = 24 * time.Hour
	// maxLeaves bounds the certificates that are kept for the next connection.
	maxLeaves = 256
)

// leaves makes the certificates that a sandbox sees. All have one key, which is never
// written to a file.
type leaves struct {
	authority *authority
	now       func() time.Time
	key       *ecdsa.PrivateKey

	mu     sync.Mutex
	byName map[string]*tls.Certificate
}

func newLeaves(a *authority, now func() time.Time) (*leaves, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	return &leaves{authority: a, now: now, key: key, byName: map[string]*tls.Certificate{}}, err
}

// For returns a certificate for one name.
func (l *leaves) For(name string) (*tls.Certificate, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if kept := l.byName[name]; kept != nil && l.now().Before(kept.Leaf.NotAfter.Add(-leafRenewal)) {
		return kept, nil
	}
	made, err := l.sign(name)
	if err != nil {
		return nil, err
	}
	if len(l.byName) >= maxLeaves {
		clear(l.byName)
	}
	l.byName[name] = made
	return made, nil
}

func (l *leaves) sign(name string) (*tls.Certificate, error) {
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	now := l.now()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{Organization: []string{"Atoll"}}, DNSNames: []string{name},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(leafLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, l.authority.certificate, l.key.Public(), l.authority.key)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(signed)
	return &tls.Certificate{Certificate: [][]byte{signed, l.authority.certificate.Raw}, PrivateKey: l.key, Leaf: leaf}, err
}
