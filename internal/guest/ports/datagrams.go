package ports

import (
	"errors"
	"net"
	"net/netip"

	"github.com/atoll-run/atoll/internal/wire"
)

const (
	// datagramLookups is how many senders of one port are identified at the same time.
	datagramLookups = 2
	// udpBuffer holds the largest datagram and shows whether one was larger.
	udpBuffer = wire.MaxDatagram + 1
)

// datagramPort is a UDP port on 127.0.0.1 that hosts share by grant: each gets the
// datagrams of the processes that were started under its grant. Others are dropped.
type datagramPort struct {
	ports   *Server
	port    int
	conn    *net.UDPConn
	members map[string]*datagramQueue // by grant; guarded by mu of ports
	arrived chan wire.Datagram        // their senders are not identified yet
}

// datagramQueue is what waits for one host.
type datagramQueue struct {
	grant   string // "": it has the port alone
	waiting chan wire.Datagram
}

// datagrams relays datagrams until the host closes the stream.
func (c *Call) datagrams(p *wire.Port) error {
	if err := checkPort(p); err != nil {
		return err
	}
	q := &datagramQueue{p.Grant, make(chan wire.Datagram, wire.MaxDatagramQueue)}
	port, err := c.ports.joinDatagrams(q, p.Port)
	if err != nil {
		return err
	}
	done := make(chan struct{})
	defer close(done)
	defer port.leave(q)
	if err := wire.WriteJSON(c.Stream, wire.FrameStarted, &wire.Bound{IPv4: true}); err != nil {
		return err
	}
	go func() {
		for q.send(c.Stream, done) {
		}
	}()
	return port.answer(c.Reader)
}

// send sends the next datagram to the host. It returns false at the end.
func (q *datagramQueue) send(stream net.Conn, done <-chan struct{}) bool {
	select {
	case d := <-q.waiting:
		return wire.WriteJSON(stream, wire.FrameDatagram, d) == nil
	case <-done:
		return false
	}
}

// answer sends the datagrams of the host to processes in the sandbox, until the host
// closes the stream.
func (p *datagramPort) answer(r *wire.Reader) error {
	for {
		frame, err := r.Frame()
		if err != nil {
			return nil
		}
		var d wire.Datagram
		if frame.Type != wire.FrameDatagram || frame.Decode(&d) != nil || len(d.Data) > wire.MaxDatagram {
			return wire.Fail(wire.CodeInvalid, "a datagram was expected")
		}
		to, err := netip.ParseAddrPort(d.From)
		if err != nil || !to.Addr().Is4() || !to.Addr().IsLoopback() {
			return wire.Fail(wire.CodeInvalid, "the address of the datagram is not on the loopback interface")
		}
		_, _ = p.conn.WriteToUDPAddrPort(d.Data, to) // the process may be gone
	}
}

// joinDatagrams adds a host to a port, which the first opens.
func (ps *Server) joinDatagrams(q *datagramQueue, port int) (*datagramPort, error) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.datagrams[port]
	if p == nil {
		var err error
		if p, err = ps.openDatagrams(port); err != nil {
			return nil, err
		}
	}
	if p.members[q.grant] != nil || len(p.members) > 0 && (q.grant == "" || p.members[""] != nil) {
		return nil, wire.Fail(wire.CodePortTaken, "another host has this port already")
	}
	p.members[q.grant] = q
	return p, nil
}

// openDatagrams opens a port. The caller holds mu, and adds a member.
func (ps *Server) openDatagrams(port int) (*datagramPort, error) {
	if len(ps.datagrams) >= wire.MaxDatagramPorts {
		return nil, wire.Fail(wire.CodeTooMany, "too many UDP ports are open in this sandbox")
	}
	conn, err := listenDatagrams(port)
	if err != nil {
		return nil, toWireError(err)
	}
	p := &datagramPort{ports: ps, port: port, conn: conn, members: map[string]*datagramQueue{}, arrived: make(chan wire.Datagram, wire.MaxDatagramQueue)}
	ps.datagrams[port] = p
	go p.receive()
	for range datagramLookups {
		go p.identify()
	}
	return p, nil
}

// leave removes a host from the port, which the last closes.
func (p *datagramPort) leave(q *datagramQueue) {
	p.ports.mu.Lock()
	defer p.ports.mu.Unlock()
	delete(p.members, q.grant)
	if len(p.members) == 0 {
		delete(p.ports.datagrams, p.port)
		_ = p.conn.Close()
	}
}

// receive reads datagrams until the port is closed. It drops what is too large, and
// everything while senders are identified too slowly.
func (p *datagramPort) receive() {
	defer close(p.arrived)
	buf := make([]byte, udpBuffer)
	for {
		n, from, err := p.conn.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || n > wire.MaxDatagram {
			continue
		}
		select {
		case p.arrived <- wire.Datagram{From: from.String(), Data: append([]byte(nil), buf[:n]...)}:
		default:
		}
	}
}

// identify finds the senders of datagrams and delivers them, until the port is closed.
func (p *datagramPort) identify() {
	to := p.conn.LocalAddr().(*net.UDPAddr).AddrPort()
	for d := range p.arrived {
		who := p.ports.callers.OfDatagram(netip.MustParseAddrPort(d.From), to)
		d.Grant, d.Exec = who.Grant, who.Exec
		p.deliver(d)
	}
}

// deliver queues a datagram for the host of its grant, or drops it.
func (p *datagramPort) deliver(d wire.Datagram) {
	p.ports.mu.Lock()
	defer p.ports.mu.Unlock()
	q := p.members[d.Grant]
	if q == nil {
		q = p.members[""]
	}
	if q == nil {
		return
	}
	select {
	case q.waiting <- d:
	default:
	}
}
