package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http/httptrace"
	"sync"
	"sync/atomic"

	"github.com/atoll-run/atoll/internal/wire/socket"
)

var errPeerClosed = errors.New("the upstream has closed the connection")

// keptConn is a connection to the upstream. Once the upstream has closed its side
// a write fails with nothing written, so that net/http sends the request over
// another connection instead of one that closed while it was kept.
type keptConn struct {
	*socket.Conn
	written atomic.Int64 // bytes
}

// Write implements net.Conn.
func (c *keptConn) Write(b []byte) (int, error) {
	if c.PeerClosed() {
		return 0, errPeerClosed
	}
	n, err := c.Conn.Write(b)
	c.written.Add(int64(n))
	return n, err
}

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// keepable makes the connections of a dialer keptConns.
func keepable(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if plain, ok := socket.Wrap(conn).(*socket.Conn); ok {
			return &keptConn{Conn: plain}, nil
		}
		return conn, nil
	}
}

// used is the connection that net/http chose for a request. Net/http sets it in
// its own goroutine.
type used struct {
	mu     sync.Mutex
	conn   *keptConn // nil: none, or not one that counts
	before int64     // bytes that were written to it before
	reused bool
}

// clear forgets the connection of an earlier attempt.
func (u *used) clear() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.conn, u.reused = nil, false
}

// set notes the connection.
func (u *used) set(info httptrace.GotConnInfo) {
	u.mu.Lock()
	defer u.mu.Unlock()
	conn := info.Conn
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	u.reused = info.Reused
	if u.conn, _ = conn.(*keptConn); u.conn != nil {
		u.before = u.conn.written.Load()
	}
}

// wasStale reports whether a kept connection was used to which nothing of the
// request was written: it had closed.
func (u *used) wasStale() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.reused && u.conn != nil && u.conn.written.Load() == u.before
}
