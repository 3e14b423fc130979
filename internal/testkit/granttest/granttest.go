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

// NewDesk returns a desk of a sandbox in which nothing runs.
func NewDesk(tb testing.TB, sandbox string) *grant.Desk {
	tb.Helper()
	book, err := filelock.Open(filepath.Join(tb.TempDir(), "leases"))
	if err != nil {
		tb.Fatal(err)
	}
	return grant.NewDesk(sandbox, &Place{}, book)
}

// Place has no processes, and notes what it is told.
type Place struct {
	mu   sync.Mutex
	Told []string
	Fail error // what it answers
}

// OpenGrant implements grant.Place.
func (p *Place) OpenGrant(_ context.Context, id string) error { return p.note("open " + id) }

// EndGrant implements grant.Place.
func (p *Place) EndGrant(_ context.Context, id string) error { return p.note("end " + id) }

func (p *Place) note(what string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Told = append(p.Told, what)
	return p.Fail
}

// Listener is a port of a sandbox, in memory.
type Listener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// NewListener returns a listener that nobody has called yet.
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

// conn knows its caller's grant, as those of a sandbox's port do.
type conn struct {
	net.Conn
	id string
}

// GrantID implements grant.Caller.
func (c *conn) GrantID() string { return c.id }
