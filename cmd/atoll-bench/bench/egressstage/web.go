package egressstage

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// LargeBytes is the size of a large answer.
const LargeBytes = 64 << 20

// web is a web server with TLS, which every name leads to.
type web struct {
	address, caFile string
	server          *http.Server
}

func startWeb(ctx context.Context, dir string) (*web, error) {
	certificate, text, err := makeCertificate()
	if err != nil {
		return nil, err
	}
	w := &web{caFile: filepath.Join(dir, "ca.pem")}
	if err := os.WriteFile(w.caFile, text, 0o600); err != nil {
		return nil, err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w.address = l.Addr().String()
	w.server = &http.Server{Handler: http.HandlerFunc(answer), ReadHeaderTimeout: time.Minute, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	go func() {
		_ = w.server.Serve(tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}))
	}()
	return w, nil
}

// answer answers /large with LargeBytes and everything else with one word.
func answer(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/large" {
		_, _ = io.WriteString(w, "hello")
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(LargeBytes))
	block := make([]byte, 256<<10)
	for range LargeBytes / len(block) {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}

func makeCertificate() (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"spliced.example", "inspected.example"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), err
}

// Lookup has every name at one public address.
func (w *web) Lookup(context.Context, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.AddrFrom4([4]byte{93, 184, 216, 34})}, nil
}

// Connect connects to the server.
func (w *web) Connect(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", w.address)
}

func (w *web) close() { _ = w.server.Close() }
