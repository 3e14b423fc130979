package outbound

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"
)

const (
	// MaxResponseHeader is the most bytes of headers that a server may answer with.
	MaxResponseHeader = 64 << 10

	tlsTimeout  = 30 * time.Second
	idleTimeout = time.Minute
)

// Options are the settings of a Host.
type Options struct {
	Getenv func(string) string // nil: os.Getenv
	CAFile string              // certificates that are trusted beside the system's
}

// Host is how this host reaches servers outside: its proxies and the
// certificates that it trusts.
type Host struct {
	proxies *Proxies
	roots   *x509.CertPool // nil: the system's
	caFile  string
}

// NewHost reads the environment and the file of certificates.
func NewHost(o Options) (*Host, error) {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	proxies, err := ProxiesOf(o.Getenv)
	if err != nil {
		return nil, err
	}
	h := &Host{proxies: proxies, caFile: o.CAFile}
	if o.CAFile == "" {
		return h, nil
	}
	if h.roots, err = x509.SystemCertPool(); err != nil {
		return nil, fmt.Errorf("certificates of the system: %w", err)
	}
	return h, addCertificates(h.roots, o.CAFile)
}

// TrustOnly returns a TLS configuration that trusts the certificates in a file
// and no others.
func TrustOnly(path string) (*tls.Config, error) {
	roots := x509.NewCertPool()
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, addCertificates(roots, path)
}

func addCertificates(to *x509.CertPool, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("certificates: %w", err)
	}
	if !to.AppendCertsFromPEM(text) {
		return fmt.Errorf("certificates: %s holds none", path)
	}
	return nil
}

// Proxies returns the proxies of the environment.
func (h *Host) Proxies() *Proxies { return h.proxies }

// CAFile returns the file of certificates beside the system's; "" is none.
func (h *Host) CAFile() string { return h.caFile }

// Transport returns a transport for servers that the configuration names: it
// uses the proxies, and connects to any address. The caller may change it before
// its first use.
func (h *Host) Transport() *http.Transport {
	t := h.transport(&Dialer{})
	t.Proxy = func(r *http.Request) (*url.URL, error) { return h.proxies.For(r.URL) }
	return t
}

// transport returns a transport on a dialer, without a proxy.
func (h *Host) transport(d *Dialer) *http.Transport {
	return &http.Transport{
		DialContext: d.DialContext, TLSClientConfig: h.TLS(),
		ForceAttemptHTTP2: true, TLSHandshakeTimeout: tlsTimeout, IdleConnTimeout: idleTimeout, MaxResponseHeaderBytes: MaxResponseHeader,
	}
}

// Client returns a client on Transport that follows no redirect: where a
// credential goes is decided by the configuration alone.
func (h *Host) Client(timeout time.Duration) *http.Client {
	return &http.Client{Transport: h.Transport(), Timeout: timeout, CheckRedirect: NoRedirect}
}

// NoRedirect is the CheckRedirect of clients that follow no redirect.
func NoRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// TLS returns how servers are verified: with the certificates that this host trusts.
// The caller may change it.
func (h *Host) TLS() *tls.Config {
	return &tls.Config{RootCAs: h.roots, MinVersion: tls.VersionTLS12}
}
