package ports

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
)

// joined returns the listener of a grant on a shared port, and what removes it.
func joined(t *testing.T, s *Server, port int, grant string) (*listener, func()) {
	t.Helper()
	l := newListener(&wire.Port{Port: port, Grant: grant}, sharedQueue)
	_, leave, err := s.join(l, endpoint{port: port}, 1)
	if err != nil {
		t.Fatal(err)
	}
	return l, func() { leave(); l.close() }
}

// deliver delivers n connections whose callers have a grant, or none, and returns their
// other ends.
func deliver(p *sharedPort, n int, grant string) []net.Conn {
	var ends []net.Conn
	for range n {
		ours, theirs := net.Pipe()
		p.deliver(accepted{theirs, Caller{Grant: grant}})
		ends = append(ends, ours)
	}
	return ends
}

// wantClosed checks which of the connections were reset.
func wantClosed(t *testing.T, what string, ends []net.Conn, want int) {
	t.Helper()
	closed := 0
	for _, end := range ends {
		_ = end.SetReadDeadline(time.Unix(1, 0))
		if _, err := end.Read(make([]byte, 1)); errors.Is(err, io.EOF) {
			closed++
		}
	}
	if closed != want {
		t.Errorf("%s: %d of %d were reset; want %d", what, closed, len(ends), want)
	}
}

// TestSharedPort: connections go to the listener of their grant. Neither those without a
// grant nor those of another grant take the room of a grant's own.
func TestSharedPort(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	_ = free.Close()
	s := NewServer(nil)
	a, leaveA := joined(t, s, port, "a")
	p := s.shared[endpoint{port: port}]
	strangers := deliver(p, sharedQueue, "")
	wantClosed(t, "without a grant", strangers, sharedQueue-sharedQueue/strangerShare)
	own := deliver(p, sharedQueue, "a")
	wantClosed(t, "of the grant, after those", own, sharedQueue/strangerShare)
	b, leaveB := joined(t, s, port, "b")
	wantClosed(t, "of another grant", deliver(p, sharedQueue, "b"), 0)
	if len(a.conns) != sharedQueue || len(b.conns) != sharedQueue {
		t.Errorf("%d and %d wait; want %d each", len(a.conns), len(b.conns), sharedQueue)
	}
	if _, _, err := s.join(newListener(&wire.Port{Port: port, Grant: "b"}, 1), endpoint{port: port}, 1); err == nil {
		t.Error("a second listener of one grant was let in")
	}
	leaveA()
	wantClosed(t, "of a listener that left", append(own, strangers...), 2*sharedQueue)
	if conn := <-b.conns; conn.Grant != "b" {
		t.Errorf("the other got a connection of %q", conn.Grant)
	}
	leaveB()
	if len(s.shared) != 0 {
		t.Error("the port is open without listeners")
	}
	again, err := net.Listen("tcp", free.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = again.Close()
}
