package machine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
)

// Why a port was refused.
var (
	// ErrPortTaken is a port that something in the sandbox listens on already.
	ErrPortTaken = errors.New("the port is taken")
	// ErrRefused is a port that nothing in the sandbox listens on.
	ErrRefused = errors.New("connection refused")
)

const (
	// maxPortStreams bounds the connections of one machine, with those that are
	// only waited for. Together with transfers they stay below wire.MaxStreams.
	maxPortStreams = 160
	// defaultPortConns bounds the connections of one port.
	defaultPortConns = 64
	// spareAccepts is how many connections of a port can come at the same time
	// without waiting for a message from here to there.
	spareAccepts = 4
	// relistenPause is how soon a port is opened again whose wire broke; it
	// doubles up to relistenPauseMax.
	relistenPause    = 20 * time.Millisecond
	relistenPauseMax = 5 * time.Second
)

// PortOptions are how a port is served.
type PortOptions struct {
	// Gate decides, for each connection, whether it is answered. An error resets
	// the connection at once. It is called before anything is read, and must not
	// take long. Nil refuses everything: a port without a gate is closed.
	Gate func(ctx context.Context, caller Caller) error
	// MaxConns bounds the connections under way; further ones wait. Default 64.
	MaxConns int
	// WithGrant has the guest find out under which grant each caller was started.
	WithGrant bool
	// Grant shares the port with listeners of other grants: this one gets the callers
	// of its grant. It implies WithGrant.
	Grant string
	// Address listens on that one address, of wire.NameAddresses, instead of both
	// loopback addresses. Listeners of the same grant then share a few streams: hundreds
	// can be open.
	Address netip.Addr
	// AnyAddress has the guest choose a free Address.
	AnyAddress bool
	// Backlog bounds the connections that wait; further ones are refused by the
	// sandbox's kernel. Default and most wire.MaxBacklog.
	Backlog int
}

// Caller is the process that connected to a port. That it is in this sandbox is
// certain; the rest is what the guest reports.
type Caller struct {
	Port  int
	Addr  netip.AddrPort
	Grant string // that it was started under; "" if none, or none that was found
	// Exec is the id of the command or process that it descends from, "" if unknown.
	Exec string
	// To is the address and port that it connected to. Older guests do not report it.
	To netip.AddrPort
}

// Listen has the guest listen on a port of the sandbox's loopback interface,
// and brings every connection here. It needs no network. If the wire breaks,
// connections break with it, and the port is opened again over the next.
func (m *Machine) Listen(ctx context.Context, port int, options *PortOptions) (*PortListener, error) {
	if port < 1 || port > 65535 {
		return nil, fmt.Errorf("%w: port %d", ErrInvalid, port)
	}
	l := newPortListener(m, port, options)
	if err := l.open(ctx); err != nil {
		return nil, fmt.Errorf("listen on port %d of the sandbox: %w", port, err)
	}
	return l, nil
}

// newPortListener returns a listener that is not open yet.
func newPortListener(m *Machine, port int, options *PortOptions) *PortListener {
	l := &PortListener{machine: m, port: port}
	if options != nil {
		l.options = *options
	}
	l.options.MaxConns = wire.Within(l.options.MaxConns, defaultPortConns, maxPortStreams)
	l.options.Backlog = wire.Within(l.options.Backlog, wire.MaxBacklog, wire.MaxBacklog)
	l.slots = make(chan struct{}, l.options.MaxConns)
	return l
}

// open opens the port: on both loopback addresses, or on one address with others.
func (l *PortListener) open(ctx context.Context) error {
	if l.options.AnyAddress || l.options.Address.IsValid() {
		return l.joinGroup(ctx)
	}
	l.conns, l.done = make(chan *portConn), make(chan struct{})
	request := wire.Port{Port: l.port, Backlog: l.options.Backlog, WithGrant: l.options.WithGrant, Grant: l.options.Grant}
	l.bind = func(ctx context.Context) (*portBinding, error) {
		return l.machine.bindPort(ctx, wire.OpPortListen, request)
	}
	l.serve = func(b *portBinding) { l.accepting(b, min(spareAccepts, l.options.MaxConns), l.acceptOne) }
	l.ctx, l.cancel = context.WithCancelCause(l.machine.ctx)
	binding, err := l.bind(ctx)
	if err != nil {
		l.cancel(err)
		return err
	}
	go l.keepOpen(binding)
	return nil
}

// PortListener is a port inside the sandbox. It is a net.Listener.
type PortListener struct {
	portKeeper
	machine *Machine
	port    int
	options PortOptions
	conns   chan *portConn
	slots   chan struct{} // one for each connection, or accept under way
	group   *portGroup    // that it belongs to, if it has an address
}

// Accept waits for the next connection that the gate lets in.
func (l *PortListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.ctx.Done():
		return nil, context.Cause(l.ctx)
	}
}

// Close closes the port, and returns when it is closed inside. Connections that
// were accepted go on.
func (l *PortListener) Close() error {
	l.cancel(net.ErrClosed)
	if l.group != nil {
		l.group.remove(l)
		return nil
	}
	<-l.done
	return nil
}

// Address returns the address that the port is open on; 127.0.0.1 if it is open on both
// loopback addresses.
func (l *PortListener) Address() netip.Addr {
	if l.group != nil {
		return l.options.Address
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// Addr is the port inside the sandbox.
func (l *PortListener) Addr() net.Addr { return portAddr(l.port) }

// portAddr is a port of some sandbox.
type portAddr int

func (portAddr) Network() string  { return "tcp" }
func (a portAddr) String() string { return fmt.Sprintf("sandbox:%d", int(a)) }

// Serve listens on a port and handles each connection, which is closed when
// handle returns. It returns when ctx ends, with nil, or when the port cannot be
// kept open; all connections are closed and all handlers done by then.
func (m *Machine) Serve(ctx context.Context, port int, options *PortOptions, handle func(net.Conn)) error {
	l, err := m.Listen(ctx, port, options)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { l.cancel(net.ErrClosed) })()
	defer l.Close()
	var handlers sync.WaitGroup
	defer handlers.Wait()
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		handlers.Go(func() {
			defer conn.Close()
			defer context.AfterFunc(l.ctx, func() { conn.Close() })()
			handle(conn)
		})
	}
}

// Dial connects to a port on the sandbox's loopback interface, whatever its
// network. The network must be "tcp". The context is for the dialling only.
func (m *Machine) Dial(ctx context.Context, network string, port int) (net.Conn, error) {
	if network != "tcp" || port < 1 || port > 65535 {
		return nil, fmt.Errorf("%w: dial %s port %d", ErrInvalid, network, port)
	}
	t, err := m.OpenOp(ctx, &OpRequest{
		slots: m.ports, Timeout: CallTimeout + dialTimeout,
		Request: &wire.Request{Op: wire.OpPortDial, Port: &wire.Port{Port: port}},
	})
	if err == nil {
		var conn *portConn
		if conn, err = newPortConn(t); err == nil && conn.caller.Port != port {
			err = t.Violation("connection to another port")
		}
		if err == nil {
			return conn, nil
		}
		t.Close()
	}
	return nil, fmt.Errorf("dial port %d of the sandbox: %w", port, err)
}

// dialTimeout is how long the guest waits for something inside to accept.
const dialTimeout = 5 * time.Second
