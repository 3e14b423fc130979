// Package splice copies the bytes of two connections to each other.
package splice

import (
	"errors"
	"io"
	"net"
	"sync"
)

// bufferSize is the most that one read takes.
const bufferSize = 64 << 10

var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// Both copies between a and b until both directions have ended or one has
// failed. The end of one direction is passed on, so that the other can go on.
// Both connections are closed when it returns.
func Both(a, b net.Conn) error {
	var there sync.WaitGroup
	var errThere error
	there.Go(func() { errThere = oneWay(b, a) })
	errBack := oneWay(a, b)
	there.Wait()
	_ = a.Close()
	_ = b.Close()
	return errors.Join(errThere, errBack)
}

// oneWay copies one direction. If it fails, both connections are closed, which
// ends the other direction too.
func oneWay(to, from net.Conn) error {
	buffer := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buffer)
	if err := copyBytes(to, from, buffer[:]); err != nil {
		_ = to.Close()
		_ = from.Close()
		return err
	}
	CloseWrite(to)
	return nil
}

func copyBytes(to io.Writer, from io.Reader, buffer []byte) error {
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// CloseWrite sends the end of a direction. A connection that cannot be closed in
// one direction is closed.
func CloseWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = c.Close()
}
