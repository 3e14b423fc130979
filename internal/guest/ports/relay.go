package ports

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/buffer"
	"github.com/atoll-run/atoll/internal/wire"
	"github.com/atoll-run/atoll/internal/wire/socket"
)

// relay copies between a connection in the sandbox and a stream of the wire. It holds no
// buffer while no bytes move.
type relay struct {
	call     *Call
	data     *wire.Data    // from the host
	hostSent chan struct{} // closed when the host has sent data, or closed the stream
	first    error         // valid when hostSent is closed
	conn     *net.TCPConn
	out      net.Conn // the same, for writing
	over     sync.Once
}

// relay returns a relay that waits for data of the host.
func (c *Call) relay() *relay {
	r := &relay{call: c, data: c.Reader.Data(), hostSent: make(chan struct{})}
	go func() {
		defer close(r.hostSent)
		r.first = r.data.Wait()
	}()
	return r
}

// run copies between conn and the stream until both directions have ended.
func (r *relay) run(conn net.Conn, caller wire.Caller) error {
	r.conn, r.out = conn.(*net.TCPConn), socket.Wrap(conn)
	defer r.conn.Close()
	select {
	case r.call.ports.conns <- struct{}{}:
		defer func() { <-r.call.ports.conns }()
	default:
		abort(conn)
		return wire.Fail(wire.CodeTooMany, "too many connections in this sandbox")
	}
	if err := wire.WriteJSON(r.call.Stream, wire.FrameStarted, caller); err != nil {
		abort(conn)
		return nil
	}
	var down sync.WaitGroup
	down.Go(r.down)
	r.up()
	down.Wait()
	return nil
}

// reset ends both directions at once, with RST.
func (r *relay) reset() {
	r.over.Do(func() {
		abort(r.conn)
		_ = r.call.Stream.SetDeadline(time.Unix(1, 0))
	})
}

// stop ends the direction to the host, which has closed the stream. Data that was written
// to the connection is still delivered.
func (r *relay) stop() {
	r.over.Do(func() {
		_ = r.conn.SetReadDeadline(time.Unix(1, 0))
		_ = r.call.Stream.SetDeadline(time.Unix(1, 0))
	})
}

// up copies bytes from the connection to the host.
func (r *relay) up() {
	for {
		var c *buffer.Frame
		n := buffer.ReadReady(r.conn, true, func(fd int) (int, error) {
			c = buffer.Get()
			n, err := unix.Read(fd, c[wire.HeaderSize:])
			if n <= 0 {
				buffer.Put(c)
			}
			return n, err
		})
		if n < 0 {
			r.reset()
			return
		}
		if n == 0 {
			if wire.WriteFrame(r.call.Stream, wire.FrameDataEnd, nil) != nil {
				r.reset()
			}
			return
		}
		wire.PutHeader(c[:], wire.FrameData, n)
		_, err := r.call.Stream.Write(c[:wire.HeaderSize+n])
		buffer.Put(c)
		if err != nil {
			r.reset()
			return
		}
	}
}

// down copies bytes from the host to the connection. After their end it waits until the
// host closes the stream.
func (r *relay) down() {
	<-r.hostSent
	err := r.first
	for err == nil {
		if err = r.move(); err == nil {
			err = r.data.Wait()
		}
	}
	if errors.Is(err, io.EOF) && r.conn.CloseWrite() == nil {
		_, _ = r.call.Reader.Frame()
		r.stop()
		return
	}
	r.reset()
}

// move copies the data of one read.
func (r *relay) move() error {
	c := buffer.Get()
	defer buffer.Put(c)
	n, err := r.data.Read(c[:])
	if err != nil {
		return err
	}
	_, err = r.out.Write(c[:n])
	return err
}
