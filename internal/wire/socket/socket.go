// Package socket reads and writes sockets by raw system calls, which the Go
// scheduler does not see.
//
// The net package announces every system call, so that the scheduler can give
// the processor to other goroutines while the call waits. Calls on these sockets
// never wait: the kernel moves what it can and returns. Announcing
// them costs as much as a small one; the first after a moment of rest wakes the
// scheduler's monitor, which then runs every 20 microseconds; and while
// a large one copies, the scheduler wakes another thread for a processor that is
// not free. What an unannounced call moves is bounded, because the collector
// waits for it.
package socket

import (
	"io"
	"net"
	"os"
	"syscall"
)

// Conn is a connection over a socket. One goroutine may read and one may write
// at a time.
type Conn struct {
	net.Conn
	from, to syscall.RawConn
	in, out  transfer
}

// Wrap returns conn as a Conn if it is a stream over a socket, else as it is.
func Wrap(conn net.Conn) net.Conn {
	switch conn.(type) {
	case *net.UnixConn, *net.TCPConn:
	default:
		return conn
	}
	both := conn.(syscall.Conn)
	c, err := WrapFiles(conn, both, both)
	if err != nil {
		return conn
	}
	return c
}

// WrapFiles returns conn as a Conn that reads and writes two files for it, neither of
// which makes a call wait.
func WrapFiles(conn net.Conn, from, to syscall.Conn) (*Conn, error) {
	in, err := from.SyscallConn()
	if err != nil {
		return nil, err
	}
	out, err := to.SyscallConn()
	if err != nil {
		return nil, err
	}
	c := &Conn{Conn: conn, from: in, to: out}
	c.in.use(syscall.SYS_READ, syscall.SYS_READV)
	c.out.use(syscall.SYS_WRITE, syscall.SYS_WRITEV)
	return c, nil
}

// Read implements net.Conn.
func (c *Conn) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	c.in.add(b)
	n, err := c.result(&c.in, c.from.Read(c.in.attempt), "read")
	if n == 0 && err == nil {
		err = io.EOF
	}
	return n, err
}

// Write implements net.Conn.
func (c *Conn) Write(b []byte) (written int, err error) {
	for written < len(b) {
		c.out.add(b[written:])
		n, err := c.result(&c.out, c.to.Write(c.out.attempt), "write")
		if written += n; err != nil {
			return written, err
		}
	}
	return written, nil
}

// WritePieces writes pieces one after the other, in as few calls as that takes.
// It uses the slice up.
func (c *Conn) WritePieces(pieces [][]byte) error {
	for {
		for len(pieces) > 0 && len(pieces[0]) == 0 {
			pieces = pieces[1:]
		}
		if len(pieces) == 0 {
			return nil
		}
		for _, piece := range pieces {
			if !c.out.add(piece) {
				break
			}
		}
		n, err := c.result(&c.out, c.to.Write(c.out.attempt), "write")
		if err != nil {
			return err
		}
		for ; n > 0 && n >= len(pieces[0]); pieces = pieces[1:] {
			n -= len(pieces[0])
		}
		if n > 0 {
			pieces[0] = pieces[0][n:]
		}
	}
}

// result is what a transfer came to; err is why it was not tried to the end.
func (c *Conn) result(t *transfer, err error, name string) (int, error) {
	moved, errno := t.take()
	switch {
	case err != nil:
		return 0, err
	case errno != 0:
		return 0, &net.OpError{Op: name, Net: c.LocalAddr().Network(), Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: os.NewSyscallError(name, errno)}
	}
	return moved, nil
}

// CloseWrite closes our half.
func (c *Conn) CloseWrite() error {
	return c.Conn.(interface{ CloseWrite() error }).CloseWrite()
}
