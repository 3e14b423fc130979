// Package loopback joins a port of the host's loopback interface and a port of a
// sandbox's, in either direction: it accepts connections on one side, dials the other
// side for each, and copies bytes.
package loopback

import (
	"context"
	"io"
	"net"
	"sync"
	"time"
)

// MaxConns is how many connections of one port are served at the same time. Further
// ones wait to be accepted.
const MaxConns = 64

// dialTimeout bounds the dialling of one connection.
const dialTimeout = 10 * time.Second

// Dial connects to the other side, for the connection that was accepted.
type Dial func(ctx context.Context, accepted net.Conn) (net.Conn, error)

// Serve accepts connections of l and joins each with one that dial returns. A connection
// that dial has none for is reset. Serve returns nil when ctx ends, or the error of l;
// l and all connections are closed by then.
func Serve(ctx context.Context, l net.Listener, dial Dial) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	slots := make(chan struct{}, MaxConns)
	var conns sync.WaitGroup
	defer conns.Wait()
	defer cancel()
	for {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		conn, err := l.Accept()
		switch {
		case ctx.Err() != nil && err != nil:
			return nil
		case err != nil:
			l.Close()
			return err
		}
		conns.Go(func() {
			defer func() { <-slots }()
			serveConn(ctx, conn, dial)
		})
	}
}

func serveConn(ctx context.Context, conn net.Conn, dial Dial) {
	defer conn.Close()
	dialling, cancel := context.WithTimeout(ctx, dialTimeout)
	other, err := dial(dialling, conn)
	cancel()
	if err != nil {
		reset(conn)
		return
	}
	defer other.Close()
	Join(ctx, conn, other)
}

// Join copies bytes between two connections until both directions have ended, one of
// them failed, or ctx ends, and closes both. A direction that ends leaves the other open.
func Join(ctx context.Context, a, b net.Conn) {
	closeBoth := func() { a.Close(); b.Close() }
	defer closeBoth()
	defer context.AfterFunc(ctx, closeBoth)()
	var copies sync.WaitGroup
	copies.Go(func() { copyOne(a, b, closeBoth) })
	copies.Go(func() { copyOne(b, a, closeBoth) })
	copies.Wait()
}

// copyOne copies one direction and passes its end on.
func copyOne(to, from net.Conn, fail func()) {
	if _, err := io.Copy(to, from); err != nil {
		reset(to)
		fail()
		return
	}
	half, ok := to.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		fail()
	}
}

// reset makes the close of a connection of the host one that its peer sees as a failure.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
}
