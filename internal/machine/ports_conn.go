package machine

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
)

// ErrReset is a connection that the other side broke off.
var ErrReset = errors.New("connection reset by the sandbox")

// closeTimeout is how long Close may take to send the end.
const closeTimeout = time.Second

// portConn is a connection to something inside a sandbox. It can be closed in
// one direction, with CloseWrite.
type portConn struct {
	*StreamOp
	caller Caller
	closed func() // nil, or called once when it is closed

	reading sync.Mutex
	data    *wire.Data

	writing sync.Mutex
	ended   bool // no more can be written
	once    sync.Once
}

// newPortConn waits until the stream has become a connection.
func newPortConn(t *StreamOp) (*portConn, error) {
	var reported wire.Caller
	if err := t.Answer(wire.FrameStarted, &reported); err != nil {
		return nil, err
	}
	caller, ok := callerFrom(&reported)
	if !ok {
		return nil, t.Violation("connection from elsewhere")
	}
	t.detachContext()
	return &portConn{StreamOp: t, caller: caller, data: t.Frames.Data()}, nil
}

// callerFrom checks what a guest reports of a caller.
func callerFrom(c *wire.Caller) (Caller, bool) {
	from, err := netip.ParseAddrPort(c.Peer)
	caller := Caller{Port: c.Port, Addr: from, Grant: c.Grant, Exec: c.Exec}
	if err != nil || !from.Addr().IsLoopback() || !validOrEmpty(c.Grant) || !validOrEmpty(c.Exec) {
		return caller, false
	}
	if c.To == "" { // a guest without the feature
		return caller, true
	}
	caller.To, err = netip.ParseAddrPort(c.To)
	return caller, err == nil && caller.To.Addr().IsLoopback() && int(caller.To.Port()) == c.Port
}

func validOrEmpty(id string) bool { return id == "" || wire.ValidID(id) }

// Read implements net.Conn.
func (c *portConn) Read(p []byte) (int, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	n, err := c.data.Read(p)
	return n, c.reason(err)
}

// Write implements net.Conn.
func (c *portConn) Write(p []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.ended {
		return 0, net.ErrClosed
	}
	data := wire.NewDataWriter(c.stream)
	defer data.Close()
	n, err := data.Write(p)
	return n, c.reason(err)
}

// CloseWrite sends that no more will be written. Reading goes on.
func (c *portConn) CloseWrite() error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.ended {
		return nil
	}
	c.ended = true
	return c.reason(wire.WriteFrame(c.stream, wire.FrameDataEnd, nil))
}

// Close implements net.Conn. What was written arrives.
func (c *portConn) Close() error {
	c.once.Do(func() {
		_ = c.stream.SetWriteDeadline(time.Now().Add(closeTimeout))
		_ = c.CloseWrite()
		c.StreamOp.Close()
		if c.closed != nil {
			c.closed()
		}
	})
	return nil
}

// Reset closes a connection without delivering anything: the other end is reset.
func (c *portConn) Reset() {
	c.once.Do(func() {
		c.StreamOp.Close()
		if c.closed != nil {
			c.closed()
		}
	})
}

// reason converts an error into what net.Conn returns.
func (c *portConn) reason(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return os.ErrDeadlineExceeded
	}
	if stop, ok := errors.AsType[*wire.Interrupt](err); ok && stop.Type != wire.FrameError {
		return c.UnexpectedFrame(stop.Frame)
	}
	if errors.Is(err, wire.ErrProtocol) {
		return c.machine.protocolError(c.wire, err)
	}
	select {
	case <-c.wire.Done(): // not the caller's doing
		return fmt.Errorf("%w: %w", ErrReset, ErrLost)
	default:
		return ErrReset
	}
}

// Lost reports whether the wire broke under the connection, which its users
// notice only when they use it.
func (c *portConn) Lost() bool {
	select {
	case <-c.wire.Done():
		return true
	default:
		return false
	}
}

// GrantID implements grant.Caller: what the guest found out about the other end.
func (c *portConn) GrantID() string { return c.caller.Grant }

// ExecID returns the id of the command or process that the other end descends from, as
// the guest found out, or "".
func (c *portConn) ExecID() string { return c.caller.Exec }

// LocalAddr implements net.Conn: the port inside the sandbox.
func (c *portConn) LocalAddr() net.Addr { return portAddr(c.caller.Port) }

// RemoteAddr implements net.Conn: the other end, inside the sandbox.
func (c *portConn) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.caller.Addr) }

// SetDeadline implements net.Conn.
func (c *portConn) SetDeadline(t time.Time) error { return c.stream.SetDeadline(t) }

// SetReadDeadline implements net.Conn.
func (c *portConn) SetReadDeadline(t time.Time) error { return c.stream.SetReadDeadline(t) }

// SetWriteDeadline implements net.Conn.
func (c *portConn) SetWriteDeadline(t time.Time) error { return c.stream.SetWriteDeadline(t) }
