package guest

import (
	"context"
	"io"
	"net"
	"os"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
)

// BridgeMany is BridgeStdio for an engine whose execs are dear: its standard input and
// output carry several connections, each of which is connected to process 1.
func BridgeMany(ctx context.Context, o *BridgeOptions, in, out *os.File) error {
	mux, err := wire.GuestMux(&stdioConn{in: in, out: out})
	if err != nil {
		return err
	}
	defer mux.Close()
	for {
		stream, err := mux.Accept()
		if err != nil {
			return nil // the host has ended it
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
type stdioConn struct{ in, out *os.File }

func (c *stdioConn) Read(p []byte) (int, error)  { return c.in.Read(p) }
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
