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
	// dialTimeout bounds the wait for something inside to accept.
	dialTimeout = 5 * time.Second
	// acceptRetry is how soon a listener without descriptors tries again.
	acceptRetry = 100 * time.Millisecond
)

// ports are the loopback ports that hosts have opened.
type ports struct {
	mu        sync.Mutex
	listeners map[string]*portListener // by the id that the host chose
	conns     chan struct{}            // one for each connection under way
}

func newPorts() *ports {
	return &ports{listeners: map[string]*portListener{}, conns: make(chan struct{}, wire.MaxPortConns)}
}

// portOps are the operations on ports.
var portOps = map[wire.Op]func(*call, *wire.Port) error{
	wire.OpPortListen: (*call).portListen,
	wire.OpPortAccept: (*call).portAccept,
	wire.OpPortDial:   (*call).portDial,
}

// portListen keeps a port open until the host leaves the stream.
func (c *call) portListen(p *wire.Port) error {
	if !wire.ValidID(p.ID) || p.Port < 1 || p.Port > 65535 {
		return wire.Fail(wire.CodeInvalid, "the id or the port makes no sense")
	}
	l := &portListener{port: p.Port, who: p.WithGrant, conns: make(chan net.Conn), closed: make(chan struct{})}
	if err := c.server.ports.claim(p.ID, l); err != nil {
		return err
	}
	defer c.server.ports.drop(p.ID)
	bound, err := l.open(min(max(p.Backlog, 1), wire.MaxBacklog))
	if err != nil {
		return err
	}
	defer l.close()
	if err := wire.WriteJSON(c.stream, wire.FrameStarted, bound); err != nil {
		return err
	}
	_, _ = c.reader.Frame() // there is nothing to say but goodbye
	return nil
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

// portListener is one open port, on both loopback addresses.
type portListener struct {
	port      int
	who       bool // the host wants to know under which grant a caller was started
	listeners []net.Listener
	conns     chan net.Conn // accepted, for the next who asks
	closed    chan struct{}
}

// open listens. A sandbox without one of the protocols has the other.
func (l *portListener) open(backlog int) (*wire.Bound, error) {
	v4, err := listenLoopback(&unix.SockaddrInet4{Port: l.port, Addr: [4]byte{127, 0, 0, 1}}, backlog)
	if err != nil && !missingProtocol(err) {
		return nil, portError(err)
	}
	v6, err6 := listenLoopback(&unix.SockaddrInet6{Port: l.port, Addr: [16]byte{15: 1}}, backlog)
	if err6 != nil && (!missingProtocol(err6) || err != nil) {
		if v4 != nil {
			v4.Close()
		}
		return nil, portError(err6)
	}
	for _, listener := range []net.Listener{v4, v6} {
		if listener != nil {
			l.listeners = append(l.listeners, listener)
			go l.accept(listener)
		}
	}
	return &wire.Bound{IPv4: v4 != nil, IPv6: v6 != nil}, nil
}

func missingProtocol(err error) bool {
	return errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EADDRNOTAVAIL)
}

// accept takes one connection after the other. The rest wait in the kernel.
func (l *portListener) accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // no descriptors left: others give some back
			select {
			case <-time.After(acceptRetry):
				continue
			case <-l.closed:
				return
			}
		}
		select {
		case l.conns <- conn:
		case <-l.closed:
			abort(conn)
			return
		}
	}
}

func (l *portListener) close() {
	close(l.closed)
	for _, listener := range l.listeners {
		listener.Close()
	}
}

// portAccept waits for a connection and hands it to the host.
func (c *call) portAccept(p *wire.Port) error {
	l := c.server.ports.find(p.ID)
	if l == nil {
		return wire.Fail(wire.CodeRefused, "there is no such listener")
	}
	r := c.relay()
	select {
	case conn := <-l.conns:
		return r.run(conn, c.callerOf(conn, l))
	case <-r.hostSent: // the host has left: there is nothing that it could say yet
		return nil
	case <-l.closed:
		return wire.Fail(wire.CodeRefused, "the listener was closed")
	}
}

// callerOf tells who connected.
func (c *call) callerOf(conn net.Conn, l *portListener) wire.Caller {
	caller := wire.Caller{Port: l.port, Peer: conn.RemoteAddr().String()}
	if l.who {
		c.server.withSlot(func() { caller.Grant = c.server.grants.ofPeer(conn) })
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

// portError names the reason why a port cannot be had.
func portError(err error) error {
	code := wire.CodeInternal
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		return wire.Fail(wire.CodePortTaken, "something else in the sandbox listens there")
	// A listener that closes while somebody connects resets the connection.
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
