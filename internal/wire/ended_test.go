package wire_test

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
)

// opened is a stream that both sides know.
func opened(t *testing.T, host, guest *wire.Mux) (ours, theirs net.Conn) {
	t.Helper()
	ours, err := host.Open()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ours.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if theirs, err = guest.Accept(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(theirs, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return ours, theirs
}

// over waits for the end of a Mux.
func over(t *testing.T, session *wire.Mux) {
	t.Helper()
	select {
	case <-session.Done():
	case <-time.After(30 * time.Second):
		t.Fatal("the session goes on")
	}
}

// TestEndOfStreamBeforeEndOfSession: a host that ends a stream and, right after
// it, the session, has ended the stream on purpose. One that only ends the
// session has not.
func TestEndOfStreamBeforeEndOfSession(t *testing.T) {
	for range 100 { // what ends a stream is held back for a moment
		host, guest := sessions(t)
		ours, theirs := opened(t, host, guest)
		_, other := opened(t, host, guest)
		if guest.Ended(theirs) || guest.Ended(other) {
			t.Fatal("ended before its end")
		}
		_ = ours.Close()
		_ = host.Close()
		over(t, guest)
		if !guest.Ended(theirs) || guest.Ended(other) {
			t.Fatalf("the one that ended: %v; the other: %v", guest.Ended(theirs), guest.Ended(other))
		}
	}
}

// TestBrokenWireEndsNoStream: a peer that loses the connection has not closed its
// streams.
func TestBrokenWireEndsNoStream(t *testing.T) {
	ours, theirs := pair(t)
	host, err := wire.HostMux(ours)
	if err != nil {
		t.Fatal(err)
	}
	guest, err := wire.GuestMux(theirs)
	if err != nil {
		t.Fatal(err)
	}
	_, stream := opened(t, host, guest)
	_ = ours.Close()
	over(t, guest)
	if guest.Ended(stream) {
		t.Error("ended, and the wire only broke")
	}
	_, _ = host.Close(), guest.Close()
	if plain, _ := pair(t); guest.Ended(plain) {
		t.Error("what is no stream has ended")
	}
}

// TestEndedStreamsAreForgotten: of the streams that ended only the last are known.
func TestEndedStreamsAreForgotten(t *testing.T) {
	host, guest := sessions(t)
	var streams []net.Conn
	for range 2 * wire.MaxStreams {
		ours, theirs := opened(t, host, guest)
		_ = ours.Close()
		if _, err := theirs.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		_ = theirs.Close()
		streams = append(streams, theirs)
	}
	for i, stream := range streams {
		if known := guest.Ended(stream); known != (i >= wire.MaxStreams) {
			t.Fatalf("stream %d is known to have ended: %v", i, known)
		}
	}
}

// TestClosingDoesNotWait: a peer that does not read does not keep a session from
// closing, although something was held back for it.
func TestClosingDoesNotWait(t *testing.T) {
	ours, theirs := net.Pipe() // takes nothing that is not read
	defer theirs.Close()
	host, err := wire.HostMux(ours)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := host.Open(); err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{})
	go func() { defer close(closed); _ = host.Close() }()
	select {
	case <-closed:
	case <-time.After(5 * time.Second): // a write may take twice that
		t.Error("it waits for the peer")
	}
}
