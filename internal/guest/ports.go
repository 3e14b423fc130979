package guest

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
	"golang.org/x/sys/unix"
)

const (
	// dialTimeout bounds the wait for a process in the sandbox to accept.
	dialTimeout = 5 * time.Second
	// acceptRetry is the pause after accept failed for want of descriptors.
	acceptRetry = 100 * time.Millisecond
)

// ports holds the loopback ports that hosts have opened.
type ports struct {
	mu        sync.Mutex
	listeners map[string]*portListener // by the id that the host chose
	shared    map[int]*sharedPort      // by port
	conns     chan struct{}            // one for each connection that is relayed
}

func newPorts() *ports {
	return &ports{listeners: map[string]*portListener{}, shared: map[int]*sharedPort{}, conns: make(chan struct{}, wire.MaxPortConns)}
}

// portOps are the operations on ports.
var portOps = map[wire.Op]func(*call, *wire.Port) error{
	wire.OpPortListen: (*call).portListen,
	wire.OpPortAccept: (*call).portAccept,
	wire.OpPortDial:   (*call).portDial,
}

// portListen keeps a port open until the host closes the stream.
func (c *call) portListen(p *wire.Port) error {
	if !wire.ValidID(p.ID) || p.Port < 1 || p.Port > 65535 || p.Grant != "" && !wire.ValidID(p.Grant) {
		return wire.Fail(wire.CodeInvalid, "the id or the port makes no sense")
	}
	l := newPortListener(p)
	if err := c.server.ports.claim(p.ID, l); err != nil {
		return err
	}
	defer c.server.ports.drop(p.ID)
	bound, leave, err := c.open(l, min(max(p.Backlog, 1), wire.MaxBacklog))
	if err != nil {
		return err
	}
	defer leave()
	if err := wire.WriteJSON(c.stream, wire.FrameStarted, bound); err != nil {
		return err
	}
	_, _ = c.reader.Frame() // returns when the host closes the stream
	return nil
}

// open opens the port of a listener, or joins the listeners of other grants.
func (c *call) open(l *portListener, backlog int) (*wire.Bound, func(), error) {
	if l.grant != "" {
		return c.server.joinPort(l, backlog)
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

func (ps *ports) claim(id string, l *portListener) error {
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

func (ps *ports) drop(id string) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	delete(ps.listeners, id)
}

func (ps *ports) find(id string) *portListener {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.listeners[id]
}

// portListener is one host's listener on a port.
type portListener struct {
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

func newPortListener(p *wire.Port) *portListener {
	l := &portListener{port: p.Port, withGrant: p.WithGrant, grant: p.Grant, closed: make(chan struct{})}
	queue := 0 // connections wait in the kernel
	if l.grant != "" {
		queue = sharedQueue
	}
	l.conns = make(chan accepted, queue)
	return l
}

// offer waits until the host takes the connection.
func (l *portListener) offer(conn net.Conn) {
	select {
	case l.conns <- accepted{Conn: conn}:
	case <-l.closed:
		abort(conn)
	}
}

// portAccept waits for a connection and relays it to the host.
func (c *call) portAccept(p *wire.Port) error {
	l := c.server.ports.find(p.ID)
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
func (c *call) callerOf(conn accepted, l *portListener) wire.Caller {
	caller := wire.Caller{Port: l.port, Peer: conn.RemoteAddr().String(), Grant: conn.grant}
	if l.withGrant && l.grant == "" {
		c.server.withSlot(func() { caller.Grant = c.server.grants.ofPeer(conn.Conn) })
	}
	return caller
}

// portDial connects the host to a port inside.
func (c *call) portDial(p *wire.Port) error {
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
		return portError(err)
	}
	return c.relay().run(conn, wire.Caller{Port: p.Port, Peer: conn.LocalAddr().String()})
}

// portError turns an error of the kernel into one with the wire's code.
func portError(err error) error {
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
