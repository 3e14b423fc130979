package guest

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
)

// BridgeMany is BridgeStdio for an engine whose execs are dear: its standard input and
// output carry several connections, each of which is connected to process 1. It returns nil
// if its input has ended, which is the host's or the engine's doing.
func BridgeMany(ctx context.Context, o *BridgeOptions, in, out *os.File) error {
	conn := &stdioConn{in: in, out: out}
	mux, err := wire.GuestMux(conn)
	if err != nil {
		return err
	}
	defer mux.Close()
	for {
		stream, err := mux.Accept()
		if conn.ended.Load() {
			return nil
		}
		if err != nil {
			return err
		}
		if mux.Streams() > wire.MaxStreams {
			return io.ErrShortBuffer
		}
		go func() {
			defer stream.Close()
			_ = copyBytes(ctx, o, stream, stream)
		}()
	}
}

// stdioConn is standard input and output as a connection. Its peer is an engine that
// closes both when the host does, so it needs no deadlines.
type stdioConn struct {
	in, out *os.File
	ended   atomic.Bool // the input has ended
}

func (c *stdioConn) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	if errors.Is(err, io.EOF) {
		c.ended.Store(true)
	}
	return n, err
}

func (c *stdioConn) Write(p []byte) (int, error) { return c.out.Write(p) }

// Close implements net.Conn.
func (c *stdioConn) Close() error {
	_ = c.in.Close()
	return c.out.Close()
}

// LocalAddr implements net.Conn.
func (c *stdioConn) LocalAddr() net.Addr { return &net.UnixAddr{Name: "stdio", Net: "unix"} }

// RemoteAddr implements net.Conn.
func (c *stdioConn) RemoteAddr() net.Addr { return c.LocalAddr() }

// SetDeadline implements net.Conn.
func (c *stdioConn) SetDeadline(t time.Time) error {
	_ = c.in.SetReadDeadline(t) // fails where the engine gave us what has none
	_ = c.out.SetWriteDeadline(t)
	return nil
}

// SetReadDeadline implements net.Conn.
func (c *stdioConn) SetReadDeadline(t time.Time) error {
	_ = c.in.SetReadDeadline(t)
	return nil
}

// SetWriteDeadline implements net.Conn.
func (c *stdioConn) SetWriteDeadline(t time.Time) error {
	_ = c.out.SetWriteDeadline(t)
	return nil
}
