// Package granttest has grants without a sandbox, for tests of what serves them.
package granttest

import (
	"context"
	"net"
	"path/filepath"
	"sync"
	"testing"

	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/model/grant"
)

// NewGrants returns the grants of a sandbox in which nothing runs.
func NewGrants(tb testing.TB, sandbox string) *grant.Grants {
	tb.Helper()
	locks, err := filelock.Open(filepath.Join(tb.TempDir(), "leases"))
	if err != nil {
		tb.Fatal(err)
	}
	return grant.NewGrants(sandbox, &Sandbox{}, locks)
}

// Sandbox has no processes, and records its calls.
type Sandbox struct {
	mu    sync.Mutex
	Calls []string
	Fail  error // what it answers
}

// OpenGrant implements grant.Sandbox.
func (s *Sandbox) OpenGrant(_ context.Context, id string, shared bool) error {
	if shared {
		return s.record("share " + id)
	}
	return s.record("open " + id)
}

// EndGrant implements grant.Sandbox.
func (s *Sandbox) EndGrant(_ context.Context, id string) error { return s.record("end " + id) }

func (s *Sandbox) record(call string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Calls = append(s.Calls, call)
	return s.Fail
}

// Listener is a port of a sandbox, in memory.
type Listener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// NewListener returns a listener without connections.
func NewListener() *Listener {
	return &Listener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Dial connects as a process that was started under the grant with this id; ""
// is one that was started under none.
func (l *Listener) Dial(ctx context.Context, id string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.conns <- &conn{theirs, id}:
		return ours, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "unix"} }

// conn has its caller's grant, as connections from a sandbox's port do.
type conn struct {
	net.Conn
	id string
}

// GrantID implements grant.Caller.
func (c *conn) GrantID() string { return c.id }
