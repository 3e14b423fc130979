package socket_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/wire/socket"
)

// pair returns two ends of a connection.
func pair(t *testing.T, network string) (a, b net.Conn) {
	t.Helper()
	address := "127.0.0.1:0"
	if network == "unix" {
		address = filepath.Join(t.TempDir(), "s")
	}
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if a, err = net.Dial(network, l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if b, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return socket.Wrap(a), socket.Wrap(b)
}

func eachNetwork(t *testing.T, test func(t *testing.T, a, b net.Conn)) {
	for _, network := range []string{"unix", "tcp"} {
		t.Run(network, func(t *testing.T) {
			a, b := pair(t, network)
			if _, ok := a.(*socket.Conn); !ok {
				t.Fatalf("a connection over %s is a %T", network, a)
			}
			test(t, a, b)
		})
	}
}

// TestEverythingArrives moves more than a call moves and a socket holds, in
// pieces of all sizes.
func TestEverythingArrives(t *testing.T) {
	eachNetwork(t, func(t *testing.T, a, b net.Conn) {
		whole := make([]byte, 5<<20)
		_, _ = rand.Read(whole)
		var pieces [][]byte
		for rest, size := whole, 1; len(rest) > 0; size = size*2 + 1 {
			n := min(size, len(rest))
			pieces = append(pieces, rest[:n], nil)
			rest = rest[n:]
		}
		done := make(chan error, 1)
		go func() {
			err := a.(*socket.Conn).WritePieces(pieces)
			_, err2 := a.Write(whole)
			done <- errors.Join(err, err2, a.(*socket.Conn).CloseWrite())
		}()
		got, err := io.ReadAll(b)
		if err = errors.Join(err, <-done); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, append(whole, whole...)) {
			t.Errorf("%d bytes arrived, not the %d that were sent", len(got), 2*len(whole))
		}
	})
}

func TestWaitingEnds(t *testing.T) {
	eachNetwork(t, func(t *testing.T, a, b net.Conn) {
		_ = a.SetDeadline(time.Now().Add(10 * time.Millisecond))
		if _, err := a.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a read without an answer: %v", err)
		}
		if _, err := a.Write(make([]byte, 64<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a write that nobody reads: %v", err)
		}
		_ = a.SetDeadline(time.Time{})
		go func() { _, _ = io.Copy(io.Discard, b) }()
		read := make(chan error)
		go func() { _, err := a.Read(make([]byte, 1)); read <- err }()
		_ = a.Close()
		if err := <-read; !errors.Is(err, net.ErrClosed) {
			t.Errorf("a read while the connection is closed: %v", err)
		}
	})
}

func TestTheOtherSideHasGone(t *testing.T) {
	eachNetwork(t, func(t *testing.T, a, b net.Conn) {
		_ = b.Close()
		if n, err := a.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("a read behind the end: %d %v", n, err)
		}
		var err error
		for range 1000 { // the first may still be taken
			if _, err = a.Write(make([]byte, 1<<10)); err != nil {
				break
			}
		}
		var failure *net.OpError
		if !errors.As(err, &failure) || failure.Op != "write" {
			t.Errorf("writes for nobody: %v", err)
		}
	})
}

func TestMovingAllocatesNothing(t *testing.T) {
	eachNetwork(t, func(t *testing.T, a, b net.Conn) {
		buffer := make([]byte, 100)
		pieces := make([][]byte, 2)
		if n := testing.AllocsPerRun(100, func() {
			pieces[0], pieces[1] = buffer[:50], buffer[50:]
			if err := a.(*socket.Conn).WritePieces(pieces); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(b, buffer); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("%.0f allocations", n)
		}
	})
}

func TestWhatIsNoSocketStaysAsItIs(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if got := socket.Wrap(a); got != a {
		t.Errorf("a pipe became a %T", got)
	}
}
