package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/model/proxy/h1"
	"github.com/atoll-run/atoll/internal/wire/socket"
)

// Upstream is where requests go.
type Upstream struct {
	URL    string      // http://, https:// or unix:PATH; a path is put before ours
	Header string      // that the key goes into: authorization (default) or x-api-key
	TLS    *tls.Config // nil: the system's roots
	// Stranger is told nothing about who calls: it is no gateway of ours.
	Stranger bool

	ConnectTimeout time.Duration
	HeaderTimeout  time.Duration // for the first byte of an answer
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

func (u *Upstream) fill() {
	u.ConnectTimeout = cmp.Or(u.ConnectTimeout, DefaultConnectTimeout)
	u.HeaderTimeout = cmp.Or(u.HeaderTimeout, DefaultHeaderTimeout)
	u.IdleTimeout = cmp.Or(u.IdleTimeout, DefaultIdleTimeout)
	u.TotalTimeout = cmp.Or(u.TotalTimeout, DefaultTotalTimeout)
	u.KeepIdle = cmp.Or(u.KeepIdle, DefaultKeepIdle)
	u.MaxIdle = cmp.Or(u.MaxIdle, DefaultMaxIdle)
}

// upstream keeps connections to one place.
type upstream struct {
	Upstream
	network, address, host, prefix string
	secure                         *tls.Config

	mu     sync.Mutex
	idle   []*link // the one used last is last
	closed bool
}

// link is a connection to the upstream.
type link struct {
	net.Conn
	raw    syscall.RawConn // nil: cannot be asked
	reader *h1.Reader
	since  time.Time // when it was last used
	wrote  time.Time // when the deadline for writing was last set
}

func newUpstream(o Upstream) (*upstream, error) {
	u := &upstream{Upstream: o, host: "localhost"}
	if path, ok := strings.CutPrefix(o.URL, "unix:"); ok {
		u.network, u.address = "unix", path
		return u, nil
	}
	at, err := url.Parse(o.URL)
	if err != nil || at.Host == "" || at.User != nil || at.RawQuery != "" || at.Fragment != "" {
		return nil, errhint.With(errors.New("the upstream's address is not one"), "write it as http://host:port, https://host or unix:/path, without a name, password or query")
	}
	port := at.Port()
	switch at.Scheme {
	case "https":
		u.secure = secured(o.TLS, at.Hostname())
		port = orPort(port, "443")
	case "http":
		port = orPort(port, "80")
	default:
		return nil, fmt.Errorf("the upstream's address begins with %q: http, https and unix are known", at.Scheme)
	}
	u.network, u.address, u.host = "tcp", net.JoinHostPort(at.Hostname(), port), at.Host
	u.prefix = strings.TrimSuffix(strings.TrimSuffix(at.EscapedPath(), "/"), "/v1")
	return u, nil
}

func orPort(port, fallback string) string {
	if port == "" {
		return fallback
	}
	return port
}

func secured(c *tls.Config, host string) *tls.Config {
	if c == nil {
		c = &tls.Config{}
	}
	c = c.Clone()
	c.ServerName, c.NextProtos = host, []string{"http/1.1"}
	c.MinVersion = max(c.MinVersion, tls.VersionTLS12)
	return c
}

// get returns a connection, an unused one if there is.
func (u *upstream) get(ctx context.Context) (*link, error) {
	for {
		l := u.pop()
		if l == nil {
			return u.dial(ctx)
		}
		if time.Since(l.since) < u.KeepIdle && l.isQuiet() {
			return l, nil
		}
		l.discard()
	}
}

func (u *upstream) pop() *link {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.idle) == 0 {
		return nil
	}
	l := u.idle[len(u.idle)-1]
	u.idle = u.idle[:len(u.idle)-1]
	return l
}

// put keeps a connection whose answer was read to its end.
func (u *upstream) put(l *link) {
	l.since = time.Now()
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed || l.reader.Buffered() > 0 {
		l.discard()
		return
	}
	u.idle = append(u.idle, l)
	if oldest := u.idle[0]; len(u.idle) > u.MaxIdle || l.since.Sub(oldest.since) > u.KeepIdle {
		u.idle = append(u.idle[:0], u.idle[1:]...)
		oldest.discard()
	}
}

func (u *upstream) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
	for _, l := range u.idle {
		l.discard()
	}
	u.idle = nil
}

func (u *upstream) dial(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, u.ConnectTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, u.network, u.address)
	if err != nil {
		return nil, err
	}
	l := &link{Conn: socket.Wrap(conn)}
	if c, ok := conn.(syscall.Conn); ok {
		l.raw, _ = c.SyscallConn()
	}
	if u.secure != nil {
		secure := tls.Client(l.Conn, u.secure)
		if err := secure.HandshakeContext(ctx); err != nil {
			conn.Close()
			return nil, err
		}
		l.Conn = secure
	}
	l.reader = h1.NewReader(l.Conn)
	return l, nil
}

// isQuiet reports that the upstream has neither closed the connection nor sent
// something that nobody asked for.
func (l *link) isQuiet() bool {
	if l.raw == nil {
		return true
	}
	quiet := false
	err := l.raw.Control(func(fd uintptr) {
		quiet = socket.Empty(fd)
	})
	return err == nil && quiet
}

// allowWrites sets the deadline for writing anew when half of it has passed:
// that is often enough, and setting it is not free.
func (l *link) allowWrites(timeout time.Duration) error {
	now := time.Now()
	if now.Sub(l.wrote) <= timeout/2 {
		return nil
	}
	l.wrote = now
	return l.SetWriteDeadline(now.Add(timeout))
}

// writePieces writes pieces one after the other, together if that is possible.
func (l *link) writePieces(pieces [][]byte) error {
	if direct, ok := l.Conn.(*socket.Conn); ok {
		return direct.WritePieces(pieces)
	}
	buffers := net.Buffers(pieces)
	_, err := buffers.WriteTo(l.Conn)
	return err
}

func (l *link) discard() {
	l.Close()
	l.reader.Release()
}
