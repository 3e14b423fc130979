package grant

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"

	"github.com/atoll-run/atoll/internal/filelock"
)

// Why a grant ended.
var (
	// ErrClosed is a grant whose run is over.
	ErrClosed = errors.New("the grant was closed")
	// ErrExpired is a grant that reached its end before its run did.
	ErrExpired = errors.New("the grant has expired")
)

// Grant is what one run may do while it is open. Its methods are safe for
// concurrent use.
type Grant struct {
	grants *Grants
	id     string
	terms  Terms
	locks  []*filelock.Lock // held while it is open

	ctx    context.Context // ends with the grant, and says why
	cancel func(why error)

	ending sync.Once
	ended  chan struct{}
	err    error // valid when ended is closed

	mu    sync.Mutex
	conns map[*bound]struct{} // nil: the grant has ended
}

// ID names the grant towards the guest, which starts commands under it. It is a secret
// of the host and process 1 of the sandbox.
func (g *Grant) ID() string { return g.id }

// Sandbox returns the name of its sandbox.
func (g *Grant) Sandbox() string { return g.grants.name }

// Terms returns the terms that it was opened with.
func (g *Grant) Terms() Terms {
	terms := g.terms
	terms.Models = slices.Clone(terms.Models)
	return terms
}

// Context ends with the grant; its cause is ErrClosed or ErrExpired.
func (g *Grant) Context() context.Context { return g.ctx }

// Err returns why the grant has ended, or nil while it is open.
func (g *Grant) Err() error { return context.Cause(g.ctx) }

// Close ends the grant: no connection is accepted under it any more, its connections
// are closed, and its processes are ended. Other grants of the sandbox go on. It returns
// when the processes are gone, or with the reason why that is not certain. It may be
// called more than once.
func (g *Grant) Close() error { return g.end(ErrClosed) }

func (g *Grant) end(why error) error {
	g.ending.Do(func() {
		defer close(g.ended)
		g.cancel(why)
		g.closeConns()
		g.err = g.grants.end(g)
	})
	<-g.ended
	return g.err
}

// Bind returns conn as a connection that carries the grant for [Of] and is closed when
// the grant ends.
func (g *Grant) Bind(conn net.Conn) (net.Conn, error) {
	b := &bound{Conn: conn, grant: g}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.conns == nil {
		return nil, g.Err()
	}
	g.conns[b] = struct{}{}
	return b, nil
}

func (g *Grant) closeConns() {
	g.mu.Lock()
	conns := g.conns
	g.conns = nil
	g.mu.Unlock()
	var closing sync.WaitGroup
	for conn := range conns {
		closing.Go(func() { _ = conn.Conn.Close() })
	}
	closing.Wait()
}

func (g *Grant) forget(b *bound) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.conns, b)
}

func (g *Grant) release() {
	for _, lock := range g.locks {
		lock.Release()
	}
}
