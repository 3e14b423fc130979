package machine_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
)

// stallConn is a host's connection whose first write after the hello waits until
// the multiplexer has read what the guest sent since, and reads on.
type stallConn struct {
	net.Conn
	writes  atomic.Int32
	opened  chan struct{} // closed by that write
	arrived atomic.Bool   // something was read since
	once    sync.Once
	stalled chan struct{} // closed by the read after that
}

func (c *stallConn) Write(p []byte) (int, error) {
	if c.writes.Add(1) == 2 {
		close(c.opened)
		<-c.stalled
	}
	return c.Conn.Write(p)
}

func (c *stallConn) Read(p []byte) (int, error) {
	if c.arrived.Load() {
		c.once.Do(func() { close(c.stalled) })
	}
	n, err := c.Conn.Read(p)
	if c.writes.Load() > 1 && n > 0 {
		c.arrived.Store(true)
	}
	return n, err
}

// TestStallingInTheMiddleOfAFrame: a guest announces data for a stream, of which
// nothing comes. If the stream is open by then and not read yet, yamux holds its
// lock, and no deadline of the stream counts: the caller's context must.
func TestStallingInTheMiddleOfAFrame(t *testing.T) {
	stall := func(conn net.Conn) {
		_, _ = conn.Write(mux(0, 2, 1, 1000))
		_, _ = io.Copy(io.Discard, conn)
	}
	t.Run("before the stream is open", func(t *testing.T) {
		stalls(t, lying(t, greeted(stall), &machine.Options{MaxBreaks: 1}))
	})
	t.Run("before it is read", func(t *testing.T) {
		ours, theirs, err := socketPair()
		check(t, err)
		conn := &stallConn{Conn: ours, opened: make(chan struct{}), stalled: make(chan struct{})}
		m := machine.New(func(context.Context) (net.Conn, error) { return conn, nil }, &machine.Options{MaxBreaks: 1})
		played := make(chan struct{})
		go func() {
			defer close(played)
			defer theirs.Close()
			greeted(func(conn2 net.Conn) { <-conn.opened; stall(conn2) })(theirs)
		}()
		stalls(t, m)
		_ = m.Close()
		<-played
	})
}

func stalls(t *testing.T, m *machine.Machine) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	begin := time.Now()
	if err := m.Ping(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	const callTimeout = 5 * time.Second // after which the machine closes the wire itself
	if took := time.Since(begin); took >= callTimeout {
		t.Errorf("the caller was held for %v", took)
	}
	if _, err := m.Exec(ctx, &machine.Command{Argv: []string{"x"}}); err == nil {
		t.Error("exec succeeded")
	}
}
