package ports

import (
	"net"

	"github.com/atoll-run/atoll/internal/wire"
)

const (
	// sharedQueue bounds the accepted connections of one grant that its host has not
	// taken yet. Further ones are reset.
	sharedQueue = 64
	// strangerShare is the part of a queue that connections without a grant may fill, so
	// that they leave room for those of the grant.
	strangerShare = 2
	// maxLookups bounds the callers of one port that are identified at the same time.
	maxLookups = 4
)

// sharedPort is a port with a listener for each of several grants. It passes every
// connection to the listener of its caller's grant, and one whose caller has no grant
// to any: that host refuses it.
type sharedPort struct {
	ports     *Server
	endpoint  endpoint
	bound     *wire.Bound
	listeners []net.Listener
	members   map[string]*listener // by grant; guarded by mu of ports
	lookups   chan struct{}        // one for each caller that is being identified
	closed    chan struct{}
}

// join adds a listener to the shared port of an endpoint, which the first opens and
// the last closes.
func (ps *Server) join(l *listener, e endpoint, backlog int) (*wire.Bound, func(), error) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.shared[e]
	if p == nil {
		listeners, bound, err := e.listen(backlog)
		if err != nil {
			return nil, nil, err
		}
		p = &sharedPort{
			ports: ps, endpoint: e, bound: bound, listeners: listeners, members: map[string]*listener{},
			lookups: make(chan struct{}, maxLookups), closed: make(chan struct{}),
		}
		ps.shared[e] = p
		for _, listener := range listeners {
			go acceptAll(listener, p.closed, p.identify)
		}
	}
	if p.members[l.grant] != nil {
		return nil, nil, wire.Fail(wire.CodePortTaken, "the grant has a listener on this port already")
	}
	p.members[l.grant] = l
	return p.bound, func() { p.leave(l) }, nil
}

// leave removes a listener.
func (p *sharedPort) leave(l *listener) {
	p.ports.mu.Lock()
	defer p.ports.mu.Unlock()
	delete(p.members, l.grant)
	if len(p.members) == 0 {
		delete(p.ports.shared, p.endpoint)
		close(p.closed)
		closeAll(p.listeners)
	}
}

// identify finds the grant of a connection's caller, beside the accepting.
func (p *sharedPort) identify(conn net.Conn) {
	p.lookups <- struct{}{}
	go func() {
		defer func() { <-p.lookups }()
		p.deliver(accepted{conn, p.ports.callers.OfConn(conn)})
	}()
}

// deliver queues a connection for the listener of its grant, or resets it if there is no
// room.
func (p *sharedPort) deliver(conn accepted) {
	p.ports.mu.Lock()
	defer p.ports.mu.Unlock()
	l, share := p.members[conn.Grant], 1
	if l == nil {
		l, share, conn.Caller = p.any(), strangerShare, Caller{}
	}
	if l == nil || len(l.conns) >= cap(l.conns)/share {
		abort(conn.Conn)
		return
	}
	l.conns <- conn // does not block: only deliver sends, under the lock
}

func (p *sharedPort) any() *listener {
	for _, l := range p.members {
		return l
	}
	return nil
}
