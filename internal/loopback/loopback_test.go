package loopback

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
)

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// serve joins a listener with a server, and returns the address to connect to.
func serve(t *testing.T, dial Dial) (string, func() error) {
	t.Helper()
	l := listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, l, dial) }()
	return l.Addr().String(), func() error { cancel(); return <-served }
}

func dialTo(l net.Listener) Dial {
	return func(ctx context.Context, _ net.Conn) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", l.Addr().String())
	}
}

func TestServeJoinsBothDirections(t *testing.T) {
	echo := listen(t)
	go func() {
		for {
			conn, err := echo.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(conn, conn); conn.Close() }()
		}
	}()
	address, stop := serve(t, dialTo(echo))
	want := bytes.Repeat([]byte("0123456789abcdef"), 64<<10)
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			go func() { _, _ = conn.Write(want); _ = conn.(*net.TCPConn).CloseWrite() }()
			if got, err := io.ReadAll(conn); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes came back, want %d: %v", len(got), len(want), err)
			}
		})
	}
	clients.Wait()
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestServeResetsWhatCannotBeDialled(t *testing.T) {
	address, stop := serve(t, func(context.Context, net.Conn) (net.Conn, error) { return nil, errors.New("no") })
	conn, err := net.Dial("tcp", address)
	if err == nil { // else it was reset before Dial returned
		_, err = conn.Read(make([]byte, 1))
		conn.Close()
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the connection ended with %v, want a reset", err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestServeEndsItsConnections(t *testing.T) {
	silent := listen(t)
	address, stop := serve(t, dialTo(silent))
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := silent.Accept(); err != nil {
		t.Fatal(err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is still open")
	}
}

// No more than MaxConns are served; the next waits for one to end.
func TestServeBoundsConnections(t *testing.T) {
	dialled := make(chan struct{}, MaxConns+1)
	address, stop := serve(t, func(context.Context, net.Conn) (net.Conn, error) {
		near, _ := net.Pipe()
		dialled <- struct{}{}
		return near, nil
	})
	var first net.Conn
	for range MaxConns + 1 {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		first = cmp.Or(first, conn)
	}
	<-dialled
	for range MaxConns - 1 {
		<-dialled
	}
	select {
	case <-dialled:
		t.Fatal("one more than MaxConns was dialled")
	default:
	}
	first.Close()
	<-dialled
	if err := stop(); err != nil {
		t.Error(err)
	}
}
