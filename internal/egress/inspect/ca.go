package inspect

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/atoll-run/atoll/internal/secret/secretstore"
)

const (
	// caFile is the file of the certificate and the key, for its owner alone.
	caFile = "ca.pem"
	// caLife is how long a CA is good for: longer than sandboxes are kept.
	caLife = 5 * 365 * 24 * time.Hour
	// backdate covers clocks that are slow.
	backdate = 24 * time.Hour
)

// authority is the CA of one sandbox.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// openAuthority reads the CA that dir holds, or makes one.
func openAuthority(dir string, now time.Time) (*authority, error) {
	made, err := newAuthority(now)
	if err != nil {
		return nil, err
	}
	kept, err := secretstore.KeepFirst(dir, caFile, made)
	if err != nil {
		return nil, fmt.Errorf("the CA of the sandbox: %w", err)
	}
	return parseAuthority([]byte(kept))
}

// newAuthority makes a CA and returns its certificate and key as PEM.
func newAuthority(now time.Time) (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	serial, err := newSerial()
	if err != nil {
		return "", err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "Atoll sandbox CA " + serial.Text(36)[:8], Organization: []string{"Atoll"}},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(caLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return "", err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", err
	}
	return certificatePEM(signed) + string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})), nil
}

func newSerial() (*big.Int, error) {
	return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
}

func certificatePEM(der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func parseAuthority(text []byte) (*authority, error) {
	first, rest := pem.Decode(text)
	second, _ := pem.Decode(rest)
	if first == nil || second == nil {
		return nil, errors.New("the CA of the sandbox is damaged")
	}
	certificate, err := x509.ParseCertificate(first.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the CA of the sandbox: %w", err)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(second.Bytes)
	if err != nil {
		return nil, errors.New("the key of the sandbox's CA is damaged")
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	public, _ := certificate.PublicKey.(*ecdsa.PublicKey)
	if !ok || public == nil || !key.PublicKey.Equal(public) {
		return nil, errors.New("the key of the sandbox's CA is not that of its certificate")
	}
	return &authority{certificate, key}, nil
}

// PEM returns the certificate alone.
func (a *authority) PEM() []byte {
	return bytes.Clone([]byte(certificatePEM(a.certificate.Raw)))
}
