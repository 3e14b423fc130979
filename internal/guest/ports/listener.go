package ports

import (
	"net"

	"github.com/atoll-run/atoll/internal/wire"
)

// listener is one host's listener on a port, or its group of listeners.
type listener struct {
	port      int
	withGrant bool          // the host asks for the grant of each caller
	grant     string        // the grant whose callers it gets; "": it has the port alone
	conns     chan accepted // for the next accept of the host
	closed    chan struct{}
	// places are the open listeners of a group, with what closes each; nil: no group.
	// Guarded by mu of Server.
	places map[endpoint]func()
}

// accepted is a connection, with its caller on a shared port.
type accepted struct {
	net.Conn
	Caller
}

func newListener(p *wire.Port, queue int) *listener {
	if p.Grant == "" {
		queue = 0 // connections wait in the kernel
	}
	return &listener{port: p.Port, withGrant: p.WithGrant, grant: p.Grant, conns: make(chan accepted, queue), closed: make(chan struct{})}
}

// listen keeps a port open until the host closes the stream.
func (c *Call) listen(p *wire.Port) error {
	if err := checkPort(p); err != nil {
		return err
	}
	l := newListener(p, sharedQueue)
	if err := c.ports.claim(p.ID, l); err != nil {
		return err
	}
	defer c.ports.drop(p.ID)
	defer l.close()
	bound, leave, err := c.ports.open(l, endpoint{port: p.Port}, backlogOf(p))
	if err != nil {
		return err
	}
	defer leave()
	return c.untilClosed(bound)
}

// untilClosed answers Started and returns when the host closes the stream.
func (c *Call) untilClosed(bound *wire.Bound) error {
	if err := wire.WriteJSON(c.Stream, wire.FrameStarted, bound); err != nil {
		return err
	}
	_, _ = c.Reader.Frame()
	return nil
}

func backlogOf(p *wire.Port) int { return min(max(p.Backlog, 1), wire.MaxBacklog) }

// open opens an endpoint for a listener, or joins the listeners of other grants there.
// The caller calls leave.
func (ps *Server) open(l *listener, e endpoint, backlog int) (bound *wire.Bound, leave func(), err error) {
	if l.grant != "" {
		return ps.join(l, e, backlog)
	}
	listeners, bound, err := e.listen(backlog)
	if err != nil {
		return nil, nil, err
	}
	closed := make(chan struct{})
	for _, listener := range listeners {
		go acceptAll(listener, closed, func(conn net.Conn) { l.offer(conn, closed) })
	}
	return bound, func() { close(closed); closeAll(listeners) }, nil
}

// offer waits until the host takes the connection.
func (l *listener) offer(conn net.Conn, closed <-chan struct{}) {
	select {
	case l.conns <- accepted{Conn: conn}:
	case <-closed:
		abort(conn)
	}
}

// close refuses further accepts and resets the connections that wait. No endpoint
// delivers to the listener any more.
func (l *listener) close() {
	close(l.closed)
	for len(l.conns) > 0 {
		select {
		case conn := <-l.conns:
			abort(conn.Conn)
		default: // taken by an accept of the host
		}
	}
}

// accept waits for a connection and relays it to the host.
func (c *Call) accept(p *wire.Port) error {
	l := c.ports.find(p.ID)
	if l == nil {
		return wire.Fail(wire.CodeRefused, "there is no such listener")
	}
	r := c.relay()
	select {
	case conn := <-l.conns:
		return r.run(conn.Conn, c.callerOf(conn, l))
	case <-r.hostSent: // the host has closed the stream: it has nothing to send yet
		return nil
	case <-l.closed:
		return wire.Fail(wire.CodeRefused, "the listener was closed")
	}
}

// callerOf returns who connected, and where to.
func (c *Call) callerOf(conn accepted, l *listener) wire.Caller {
	who := conn.Caller
	if l.withGrant && l.grant == "" {
		who = c.ports.callers.OfConn(conn.Conn)
	}
	to := conn.LocalAddr()
	return wire.Caller{Port: portOf(to), Peer: conn.RemoteAddr().String(), Grant: who.Grant, Exec: who.Exec, To: to.String()}
}

func portOf(a net.Addr) int {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.Port
	}
	return 0
}
