package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/h1"
	"github.com/atoll-run/atoll/internal/outbound"
)

// Upstream is the server that requests go to.
type Upstream struct {
	URL    string         // http://, https:// or unix:PATH; its path is put before ours
	Header string         // that the key goes into: authorization (default), x-api-key or, of Google's server, x-goog-api-key
	Beta   string         // added to the header anthropic-beta; "" adds nothing
	Host   *outbound.Host // proxies and certificates; nil: those of the environment
	TLS    *tls.Config    // nil: that of Host
	// OmitIdentity leaves out the fields about the caller, for providers that are
	// no gateways of ours.
	OmitIdentity bool

	ConnectTimeout time.Duration // to connect, and again for the TLS handshake
	HeaderTimeout  time.Duration // for the head of an answer
	IdleTimeout    time.Duration // between two pieces of an answer
	TotalTimeout   time.Duration
	KeepIdle       time.Duration // how long an unused connection is kept
	MaxIdle        int           // how many
}

// The defaults of Upstream. Models that think are silent for minutes. Connections
// are kept for less than the five seconds of LiteLLM's server, so that none is
// used in the moment when it closes.
const (
	DefaultConnectTimeout = 10 * time.Second
	DefaultHeaderTimeout  = 10 * time.Minute
	DefaultIdleTimeout    = 5 * time.Minute
	DefaultTotalTimeout   = time.Hour
	DefaultKeepIdle       = 4 * time.Second
	DefaultMaxIdle        = 256
)

// pingAfter and pingTimeout find HTTP/2 connections whose other side has gone:
// a silent one is pinged, and closed if it does not answer.
const (
	pingAfter   = 30 * time.Second
	pingTimeout = 15 * time.Second
)

func (u *Upstream) fill() {
	u.ConnectTimeout = cmp.Or(u.ConnectTimeout, DefaultConnectTimeout)
	u.HeaderTimeout = cmp.Or(u.HeaderTimeout, DefaultHeaderTimeout)
	u.IdleTimeout = cmp.Or(u.IdleTimeout, DefaultIdleTimeout)
	u.TotalTimeout = cmp.Or(u.TotalTimeout, DefaultTotalTimeout)
	u.KeepIdle = cmp.Or(u.KeepIdle, DefaultKeepIdle)
	u.MaxIdle = cmp.Or(u.MaxIdle, DefaultMaxIdle)
}

// upstream is a server and the connections to it.
type upstream struct {
	Upstream
	transport *http.Transport
	base      url.URL // with the path that goes before ours
	address   string  // host and port, which callers must not see
}

func newUpstream(o Upstream) (*upstream, error) {
	u := &upstream{Upstream: o}
	path, local := strings.CutPrefix(o.URL, "unix:")
	if local {
		u.base, u.address = url.URL{Scheme: "http", Host: "localhost"}, path
	} else if err := u.parse(); err != nil {
		return nil, err
	}
	if o.Host == nil {
		var err error
		if o.Host, err = outbound.NewHost(outbound.Options{}); err != nil {
			return nil, err
		}
	}
	u.transport = newTransport(o)
	if local {
		u.transport.Proxy = nil
		u.transport.DialContext = keepable(func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{Timeout: o.ConnectTimeout}).DialContext(ctx, "unix", path)
		})
	}
	return u, nil
}

// parse reads the address.
func (u *upstream) parse() error {
	at, err := url.Parse(u.URL)
	if err != nil || at.Host == "" || at.User != nil || at.RawQuery != "" || at.Fragment != "" {
		return errhint.With(errors.New("the upstream's address is not one"), "write it as http://host:port, https://host or unix:/path, without a name, password or query")
	}
	ports := map[string]string{"https": "443", "http": "80"}
	if ports[at.Scheme] == "" {
		return fmt.Errorf("the upstream's address begins with %q: http, https and unix are known", at.Scheme)
	}
	u.address = net.JoinHostPort(at.Hostname(), cmp.Or(at.Port(), ports[at.Scheme]))
	prefix := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(at.EscapedPath(), "/"), "/v1"), "/v1beta")
	base, err := url.Parse(at.Scheme + "://" + at.Host + prefix)
	if err != nil {
		return err
	}
	u.base = *base
	return nil
}

// newTransport returns a transport of net/http that adds nothing to a request:
// no compression is asked for, and no redirect is followed.
func newTransport(o Upstream) *http.Transport {
	t := o.Host.Transport()
	t.DialContext = keepable((&outbound.Dialer{Timeout: o.ConnectTimeout}).DialContext)
	t.TLSHandshakeTimeout = o.ConnectTimeout
	t.DisableCompression = true
	t.MaxResponseHeaderBytes = h1.MaxHead
	t.MaxIdleConns, t.MaxIdleConnsPerHost, t.IdleConnTimeout = o.MaxIdle, o.MaxIdle, o.KeepIdle
	t.HTTP2 = &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout}
	if o.TLS != nil {
		t.TLSClientConfig = o.TLS.Clone()
		t.TLSClientConfig.MinVersion = max(o.TLS.MinVersion, tls.VersionTLS12)
	}
	return t
}

// at returns the address of a path at the upstream.
func (u *upstream) at(path, query string) *url.URL {
	to := u.base
	to.Path += path
	if to.RawPath != "" {
		to.RawPath += path
	}
	to.RawQuery = query
	return &to
}

func (u *upstream) close() { u.transport.CloseIdleConnections() }
