// Package ports serves the operations on loopback ports of the sandbox that hosts ask
// the guest for: listening, accepting and dialling. A connection is relayed over a
// stream of the wire.
package ports

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/wire"
)

const (
	// dialTimeout bounds the wait for a process in the sandbox to accept.
	dialTimeout = 5 * time.Second
	// acceptRetry is the pause after accept failed for want of descriptors.
	acceptRetry = 100 * time.Millisecond
)

// Server holds the loopback ports that hosts have opened.
type Server struct {
	grantOf   func(net.Conn) string // returns the grant of the caller of a connection, or ""
	mu        sync.Mutex
	listeners map[string]*listener // by the id that the host chose
	shared    map[int]*sharedPort  // by port
	conns     chan struct{}        // one for each connection that is relayed
}

// NewServer returns a server without ports. It calls grantOf for the callers of
// listeners that ask for their grants.
func NewServer(grantOf func(net.Conn) string) *Server {
	return &Server{grantOf: grantOf, listeners: map[string]*listener{}, shared: map[int]*sharedPort{}, conns: make(chan struct{}, wire.MaxPortConns)}
}

// Call is one request of a host and the stream that it came on.
type Call struct {
	ports  *Server
	Stream net.Conn
	Reader *wire.Reader
}

// Handles reports whether serve performs op.
func Handles(op wire.Op) bool { return ops[op] != nil }

// Serve performs op. An error it returns is for the host.
func (ps *Server) Serve(c *Call, op wire.Op, p *wire.Port) error {
	c.ports = ps
	return ops[op](c, p)
}

// ops maps the operations to the methods that perform them.
var ops = map[wire.Op]func(*Call, *wire.Port) error{
	wire.OpPortListen: (*Call).listen,
	wire.OpPortAccept: (*Call).accept,
	wire.OpPortDial:   (*Call).dial,
}

// listen keeps a port open until the host closes the stream.
func (c *Call) listen(p *wire.Port) error {
	if !wire.ValidID(p.ID) || p.Port < 1 || p.Port > 65535 || p.Grant != "" && !wire.ValidID(p.Grant) {
		return wire.Fail(wire.CodeInvalid, "the id or the port makes no sense")
	}
	l := newListener(p)
	if err := c.ports.claim(p.ID, l); err != nil {
		return err
	}
	defer c.ports.drop(p.ID)
	bound, leave, err := c.open(l, min(max(p.Backlog, 1), wire.MaxBacklog))
	if err != nil {
		return err
	}
	defer leave()
	if err := wire.WriteJSON(c.Stream, wire.FrameStarted, bound); err != nil {
		return err
	}
	_, _ = c.Reader.Frame() // returns when the host closes the stream
	return nil
}

// open opens the port of a listener, or joins the listeners of other grants.
func (c *Call) open(l *listener, backlog int) (*wire.Bound, func(), error) {
	if l.grant != "" {
		return c.ports.join(l, backlog)
	}
	listeners, bound, err := listenBoth(l.port, backlog)
	if err != nil {
		return nil, nil, err
	}
	for _, listener := range listeners {
		go acceptAll(listener, l.closed, l.offer)
	}
	return bound, func() { close(l.closed); closeAll(listeners) }, nil
}

func (ps *Server) claim(id string, l *listener) error {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if len(ps.listeners) >= wire.MaxListeners {
		return wire.Fail(wire.CodeTooMany, "too many ports are open in this sandbox")
	}
	if ps.listeners[id] != nil {
		return wire.Fail(wire.CodeExists, "the listener exists already")
	}
	ps.listeners[id] = l
	return nil
}

func (ps *Server) drop(id string) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	delete(ps.listeners, id)
}

func (ps *Server) find(id string) *listener {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.listeners[id]
}

// listener is one host's listener on a port.
type listener struct {
	port      int
	withGrant bool          // the host asks for the grant of each caller
	grant     string        // the grant whose callers it gets; "": it has the port alone
	conns     chan accepted // for the next accept of the host
	closed    chan struct{}
}

// accepted is a connection, with the grant of its caller on a shared port.
type accepted struct {
	net.Conn
	grant string
}

func newListener(p *wire.Port) *listener {
	l := &listener{port: p.Port, withGrant: p.WithGrant, grant: p.Grant, closed: make(chan struct{})}
	queue := 0 // connections wait in the kernel
	if l.grant != "" {
		queue = sharedQueue
	}
	l.conns = make(chan accepted, queue)
	return l
}

// offer waits until the host takes the connection.
func (l *listener) offer(conn net.Conn) {
	select {
	case l.conns <- accepted{Conn: conn}:
	case <-l.closed:
		abort(conn)
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

// callerOf returns who connected.
func (c *Call) callerOf(conn accepted, l *listener) wire.Caller {
	caller := wire.Caller{Port: l.port, Peer: conn.RemoteAddr().String(), Grant: conn.grant}
	if l.withGrant && l.grant == "" {
		caller.Grant = c.ports.grantOf(conn.Conn)
	}
	return caller
}

// dial connects the host to a port inside.
func (c *Call) dial(p *wire.Port) error {
	if p.Port < 1 || p.Port > 65535 {
		return wire.Fail(wire.CodeInvalid, "the port makes no sense")
	}
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(p.Port)))
	if errors.Is(err, unix.ECONNREFUSED) || err != nil && missingProtocol(err) {
		conn, err = dialer.DialContext(ctx, "tcp6", net.JoinHostPort("::1", strconv.Itoa(p.Port)))
	}
	if err != nil {
		return toWireError(err)
	}
	return c.relay().run(conn, wire.Caller{Port: p.Port, Peer: conn.LocalAddr().String()})
}

// toWireError turns an error of the kernel into one with the wire's code.
func toWireError(err error) error {
	code := wire.CodeInternal
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		return wire.Fail(wire.CodePortTaken, "something else in the sandbox listens there")
	// A listener that is closed during a connect resets the connection.
	case errors.Is(err, unix.ECONNREFUSED), errors.Is(err, unix.ECONNRESET), missingProtocol(err):
		return wire.Fail(wire.CodeRefused, "nothing in the sandbox listens there")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, unix.ETIMEDOUT):
		code = wire.CodeTimeout
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		code = wire.CodeForbidden
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE), errors.Is(err, unix.ENOBUFS), errors.Is(err, unix.ENOMEM):
		code = wire.CodeExhausted
	}
	return wire.Fail(code, err.Error())
}
