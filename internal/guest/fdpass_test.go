package guest

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// connected returns both ends of a connection on a unix socket.
func connected(t *testing.T) (dialled, accepted *net.UnixConn) {
	t.Helper()
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	far, err := net.Dial("unix", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	near, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = far.Close(); _ = near.Close() })
	return far.(*net.UnixConn), near.(*net.UnixConn)
}

// newPipe returns both ends of a pipe, of which an engine holds one and a Pass the
// other.
func newPipe(t *testing.T) (reader, writer *os.File) {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reader.Close(); _ = writer.Close() })
	return reader, writer
}

// TestFDPass: descriptors that are handed over become a wire, which ends with
// the leash.
func TestFDPass(t *testing.T) {
	in, engineIn := newPipe(t)
	engineOut, out := newPipe(t)
	leash, first := connected(t)
	given := make(chan error, 1)
	go func() { given <- passFiles(leash, in, out) }()
	if !isFDPass(first) {
		t.Fatal("it was not recognised")
	}
	conn, err := receiveConn(first)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := <-given; err != nil {
		t.Fatal(err)
	}
	_, _ = in.Close(), out.Close() // the Pass's
	for _, way := range []struct {
		to   io.Writer
		from io.Reader
	}{{engineIn, conn}, {conn, engineOut}} {
		if _, err := way.to.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		var got [5]byte
		if _, err := io.ReadFull(way.from, got[:]); err != nil || string(got[:]) != "hello" {
			t.Fatalf("%q %v", got, err)
		}
	}
	if err := conn.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Error(err)
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("beyond the deadline: %v", err)
	}
	_ = leash.Close()
	if n, err := engineOut.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the wire outlives its leash: %d %v", n, err)
	}
}

// TestFDPassIsDeclined by a process 1 that admits only hosts.
func TestFDPassIsDeclined(t *testing.T) {
	in, _ := newPipe(t)
	_, out := newPipe(t)
	leash, first := connected(t)
	go func() { _, _ = first.Read(make([]byte, 8)); _ = first.Close() }()
	if err := passFiles(leash, in, out); !errors.Is(err, errFDPassRefused) {
		t.Errorf("%v", err)
	}
}

// TestFDPassWithoutDescriptors: one that says so and brings none, or bytes of
// a host, are no wire.
func TestFDPassWithoutDescriptors(t *testing.T) {
	leash, first := connected(t)
	if _, err := leash.Write([]byte(fdPassGreeting)); err != nil {
		t.Fatal(err)
	}
	if !isFDPass(first) {
		t.Fatal("it was not recognised")
	}
	if conn, err := receiveConn(first); err == nil {
		_ = conn.Close()
		t.Error("a wire was made of nothing")
	}
	host, second := connected(t)
	if _, err := host.Write([]byte("atoll\x00\r\n")); err != nil {
		t.Fatal(err)
	}
	if isFDPass(second) {
		t.Error("a host was taken for a Pass")
	}
	var first8 [8]byte
	if _, err := io.ReadFull(second, first8[:]); err != nil || string(first8[:]) != "atoll\x00\r\n" {
		t.Errorf("the greeting is gone: %q %v", first8, err)
	}
}
