// Package ports serves the operations on loopback ports of the sandbox that hosts ask
// the guest for: listening, accepting, dialling and datagrams. A connection is relayed
// over a stream of the wire.
package ports

import (
	"net"
	"net/netip"
	"sync"

	"github.com/atoll-run/atoll/internal/wire"
)

// Caller is what is known of a process that uses a port.
type Caller struct {
	Grant string // that it was started under, or ""
	Exec  string // id of the exec that it descends from, or ""
}

// CallerFinder finds the processes at the other end of sockets.
type CallerFinder interface {
	// OfConn returns the caller of an accepted connection.
	OfConn(conn net.Conn) Caller
	// OfDatagram returns the sender of a datagram.
	OfDatagram(from, to netip.AddrPort) Caller
}

// Server holds the loopback ports that hosts have opened.
type Server struct {
	callers   CallerFinder
	mu        sync.Mutex
	listeners map[string]*listener     // by the id that the host chose
	shared    map[endpoint]*sharedPort // by where they listen
	names     nameAddresses            // of all groups
	datagrams map[int]*datagramPort    // by port
	conns     chan struct{}            // one for each connection that is relayed
}

// NewServer returns a server without ports. It uses callers for listeners that ask for
// the grants of their callers.
func NewServer(callers CallerFinder) *Server {
	return &Server{
		callers: callers, listeners: map[string]*listener{}, shared: map[endpoint]*sharedPort{},
		names: nameAddresses{listeners: map[netip.Addr]int{}}, datagrams: map[int]*datagramPort{}, conns: make(chan struct{}, wire.MaxPortConns),
	}
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
	wire.OpPortListen:    (*Call).listen,
	wire.OpPortAccept:    (*Call).accept,
	wire.OpPortDial:      (*Call).dial,
	wire.OpPortGroup:     (*Call).group,
	wire.OpPortAdd:       (*Call).add,
	wire.OpPortRemove:    (*Call).remove,
	wire.OpPortDatagrams: (*Call).datagrams,
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

// checkPort refuses a request whose id, port or grant is malformed.
func checkPort(p *wire.Port) error {
	if !wire.ValidID(p.ID) || p.Port < 1 || p.Port > 65535 || p.Grant != "" && !wire.ValidID(p.Grant) {
		return wire.Fail(wire.CodeInvalid, "the id, the port or the grant makes no sense")
	}
	return nil
}
