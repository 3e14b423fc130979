package machine

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
)

// Datagram is a UDP datagram of a process in the sandbox, or the answer to one.
type Datagram struct {
	From  netip.AddrPort // the process in the sandbox, also of an answer
	Grant string         // that the sender was started under
	Exec  string         // the command or process that the sender descends from, "" if unknown
	Data  []byte         // at most wire.MaxDatagram bytes
}

// DatagramConn is a UDP port on 127.0.0.1 inside the sandbox.
type DatagramConn struct {
	portKeeper
	machine  *Machine
	port     int
	options  PortOptions
	received chan Datagram

	sending sync.Mutex
	current *portBinding // nil: the wire is broken
}

// ListenDatagrams has the guest open a UDP port on 127.0.0.1, and brings every datagram
// here that the gate of the options lets in. With a grant it gets the datagrams of
// processes that were started under it; others are dropped. While datagrams are not
// received, at most wire.MaxDatagramQueue wait in the guest, beside those that the
// stream holds.
func (m *Machine) ListenDatagrams(ctx context.Context, port int, options *PortOptions) (*DatagramConn, error) {
	if port < 1 || port > 65535 {
		return nil, fmt.Errorf("%w: port %d", ErrInvalid, port)
	}
	c := &DatagramConn{machine: m, port: port, received: make(chan Datagram)}
	if options != nil {
		c.options = *options
	}
	request := wire.Port{Port: port, Grant: c.options.Grant}
	c.bind = func(ctx context.Context) (*portBinding, error) {
		return m.bindPort(ctx, wire.OpPortDatagrams, request)
	}
	c.serve, c.done = c.relay, make(chan struct{})
	c.ctx, c.cancel = context.WithCancelCause(m.ctx)
	binding, err := c.bind(ctx)
	if err != nil {
		c.cancel(err)
		return nil, fmt.Errorf("listen on UDP port %d of the sandbox: %w", port, err)
	}
	go c.keepOpen(binding)
	return c, nil
}

// Receive waits for the next datagram.
func (c *DatagramConn) Receive(ctx context.Context) (Datagram, error) {
	select {
	case d := <-c.received:
		return d, nil
	case <-ctx.Done():
		return Datagram{}, ctx.Err()
	case <-c.ctx.Done():
		return Datagram{}, context.Cause(c.ctx)
	}
}

// Send sends data to the process at From. Like every datagram it may get lost.
func (c *DatagramConn) Send(d Datagram) error {
	if len(d.Data) > wire.MaxDatagram || !d.From.IsValid() || !d.From.Addr().IsLoopback() {
		return fmt.Errorf("%w: datagram of %d bytes to %v", ErrInvalid, len(d.Data), d.From)
	}
	payload, err := json.Marshal(wire.Datagram{From: d.From.String(), Data: d.Data})
	if err != nil {
		return err
	}
	c.sending.Lock()
	defer c.sending.Unlock()
	if c.current == nil {
		return ErrLost
	}
	_ = c.current.stream.SetWriteDeadline(time.Now().Add(closeTimeout))
	if err := wire.WriteFrame(c.current.stream, wire.FrameDatagram, payload); err != nil {
		c.current.Close() // it may have been sent in part
		c.current = nil
		return asLost(err)
	}
	return nil
}

// Close closes the port, and returns when it is closed inside.
func (c *DatagramConn) Close() error {
	c.cancel(net.ErrClosed)
	<-c.done
	return nil
}

// relay passes datagrams to Receive until the binding or the port ends.
func (c *DatagramConn) relay(binding *portBinding) {
	c.setCurrent(binding)
	defer binding.Close()
	defer c.setCurrent(nil)
	defer context.AfterFunc(c.ctx, binding.release)()
	for {
		frame, err := binding.Frames.Frame()
		if err != nil {
			_ = c.machine.BrokenIf(err)
			return
		}
		d, ok := c.datagram(binding, frame)
		if !ok {
			return
		}
		if c.refused(d) {
			continue
		}
		select {
		case c.received <- d:
		case <-c.ctx.Done(): // wait until the guest has closed the port
		}
	}
}

func (c *DatagramConn) setCurrent(binding *portBinding) {
	c.sending.Lock()
	defer c.sending.Unlock()
	c.current = binding
}

// datagram reads a frame. A guest that sends anything else than a datagram of this grant
// breaks the protocol.
func (c *DatagramConn) datagram(binding *portBinding, frame wire.Frame) (Datagram, bool) {
	if frame.Type == wire.FrameError {
		_ = binding.ErrorFrame(frame)
		return Datagram{}, false
	}
	if frame.Type != wire.FrameDatagram {
		_ = binding.UnexpectedFrame(frame)
		return Datagram{}, false
	}
	d, ok := parseDatagram(frame.Payload, c.options.Grant)
	if !ok {
		_ = binding.Violation("a datagram that cannot be")
	}
	return d, ok
}

// parseDatagram reads a datagram that a guest sent to the listener of a grant, or of none.
func parseDatagram(payload []byte, grant string) (Datagram, bool) {
	var sent wire.Datagram
	if err := json.Unmarshal(payload, &sent); err != nil {
		return Datagram{}, false
	}
	from, err := netip.ParseAddrPort(sent.From)
	ok := err == nil && from.Addr().IsLoopback() && len(sent.Data) <= wire.MaxDatagram &&
		validOrEmpty(sent.Grant) && validOrEmpty(sent.Exec) && (grant == "" || sent.Grant == grant)
	return Datagram{From: from, Grant: sent.Grant, Exec: sent.Exec, Data: sent.Data}, ok
}

// refused reports whether the gate drops a datagram.
func (c *DatagramConn) refused(d Datagram) bool {
	to := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(c.port))
	return c.options.Gate == nil || c.options.Gate(c.ctx, Caller{Port: c.port, Addr: d.From, Grant: d.Grant, Exec: d.Exec, To: to}) != nil
}
