package egress_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/egress"
)

// clock is a clock that tests move.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time          { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) advance(d time.Duration) { c.ahead.Add(int64(d)) }
func (c *clock) use(o *egress.Options)   { o.Now = c.now }

// limited is a server with a raw port and some limits.
func limited(t *testing.T, change func(*config.EgressLimits), handle func(net.Conn), options ...func(*egress.Options)) *world {
	t.Helper()
	w := open(t, policy(t, func(e *config.Egress) { change(&e.Limits) }, "raw.example.com:7"), options...)
	w.net.name("raw.example.com", "93.184.216.34")
	w.net.serve(t, "93.184.216.34:7", handle)
	return w
}

func echo(conn net.Conn) { _, _ = io.Copy(conn, conn) }

// alive sends a byte to an echo server and reads it back.
func alive(t *testing.T, conn net.Conn) bool {
	t.Helper()
	b := []byte{'x'}
	if _, err := conn.Write(b); err != nil {
		return false
	}
	_, err := io.ReadFull(conn, b)
	return err == nil
}

// why returns the reason of the record about the end of the only connection.
func why(t *testing.T, w *world) string {
	t.Helper()
	eventually(t, "a record of the end", func() bool { return len(w.log.of(audit.EgressClosed)) > 0 })
	return w.log.of(audit.EgressClosed)[0].Reason
}

func TestAttack19_BytesOut(t *testing.T) {
	var got atomic.Int64
	w := limited(t, func(l *config.EgressLimits) { l.BytesOut = 100_000 }, func(conn net.Conn) {
		n, _ := io.Copy(io.Discard, conn)
		got.Add(n)
	})
	conn := w.box.dial(t, "raw.example.com", 7)
	for range 1000 {
		if _, err := conn.Write(make([]byte, 1000)); err != nil {
			break
		}
	}
	_ = ended(conn)
	if reason := why(t, w); !strings.Contains(reason, "bytesOut") {
		t.Errorf("ended because %q", reason)
	}
	if got.Load() > 100_000 {
		t.Errorf("%d bytes left", got.Load())
	}
}

func TestAttack19_BytesIn(t *testing.T) {
	w := limited(t, func(l *config.EgressLimits) { l.BytesIn = 100_000 }, func(conn net.Conn) {
		_, _ = io.ReadFull(conn, []byte{0}) // or it is over before the other side knows that it has begun
		repeat(conn, "x")
	})
	conn := w.box.dial(t, "raw.example.com", 7)
	if _, err := conn.Write([]byte{'x'}); err != nil {
		t.Fatal(err)
	}
	if n, _ := io.Copy(io.Discard, conn); n > 100_000 {
		t.Errorf("%d bytes came in", n)
	}
	if reason := why(t, w); !strings.Contains(reason, "bytesIn") {
		t.Errorf("ended because %q", reason)
	}
}

// TestAttack19_LifeAndIdle moves a byte now and then: the connection is closed after
// lifeSeconds all the same, and a silent one after idleSeconds.
func TestAttack19_LifeAndIdle(t *testing.T) {
	for limit, step := range map[string]time.Duration{"lifeSeconds": 50 * time.Second, "idleSeconds": 70 * time.Second} {
		c := &clock{}
		w := limited(t, func(l *config.EgressLimits) { l.LifeSeconds, l.IdleSeconds = 200, 60 }, echo, c.use)
		conn := w.box.dial(t, "raw.example.com", 7)
		if !alive(t, conn) {
			t.Fatal("no echo")
		}
		for range 4 {
			c.advance(step)
			w.server.Sweep()
			if !alive(t, conn) {
				break
			}
		}
		c.advance(time.Second)
		w.server.Sweep()
		_ = ended(conn)
		if reason := why(t, w); !strings.Contains(reason, limit) {
			t.Errorf("%s: ended because %q", limit, reason)
		}
	}
}

func TestAttack19_NewPerMinute(t *testing.T) {
	c := &clock{}
	w := limited(t, func(l *config.EgressLimits) { l.NewPerMinute = 5 }, echo, c.use)
	try := func() (admitted int) {
		for range 8 {
			conn := w.box.dial(t, "raw.example.com", 7)
			if alive(t, conn) {
				admitted++
			}
			conn.Close()
		}
		return admitted
	}
	if n := try(); n != 5 {
		t.Errorf("%d of 8 connections in the first minute", n)
	}
	c.advance(30 * time.Second)
	if n := try(); n < 2 || n > 3 {
		t.Errorf("%d of 8 connections half a minute later", n)
	}
	if d := w.denials(); len(d) == 0 || !strings.Contains(d[0].Reason, "newPerMinute") {
		t.Errorf("denials %+v", d)
	}
}

// A flood opens no more connections than the limit; the rest wait or are closed,
// and one that waits gets the place of one that ends.
func TestAttack22_Flood(t *testing.T) {
	var open, most atomic.Int64
	w := limited(t, func(l *config.EgressLimits) { l.Connections, l.NewPerMinute = 4, 100_000 }, func(conn net.Conn) {
		for n := open.Add(1); ; {
			if before := most.Load(); n <= before || most.CompareAndSwap(before, n) {
				break
			}
		}
		echo(conn)
		open.Add(-1)
	})
	var first []net.Conn
	for range 4 {
		conn := w.box.dial(t, "raw.example.com", 7)
		if !alive(t, conn) {
			t.Fatal("no echo")
		}
		first = append(first, conn)
	}
	waiting := w.box.dial(t, "raw.example.com", 7)
	first[0].Close()
	if !alive(t, waiting) {
		t.Error("one that waited did not get the place of one that ended")
	}
	first[0] = waiting
	a := w.box.lookup(t, "raw.example.com")
	var flood sync.WaitGroup
	for range 50 {
		flood.Go(func() {
			for range 20 {
				if conn, err := w.box.connect(a, 7); err == nil {
					_, _ = conn.Write([]byte{'x'})
					conn.Close()
				}
			}
		})
	}
	flood.Wait()
	if most.Load() > 4 {
		t.Errorf("%d connections at the same time", most.Load())
	}
	for _, conn := range first {
		if !alive(t, conn) {
			t.Error("the flood broke a connection")
		}
	}
}

// Programs that send the beginning of a message and then nothing take none of the
// connections, and another sandbox does not notice them.
func TestAttack22_Slowloris(t *testing.T) {
	w := open(t, policy(t, func(e *config.Egress) { e.Limits.Connections = 8 }, "good.example.com"), func(o *egress.Options) { o.SetHelloTimeout(200 * time.Millisecond) })
	other := cdn(t)
	begin := inRecords(message(serverNames("good.example.com")), 16<<10)[:20]
	var slow []net.Conn
	for range 30 {
		conn := w.box.dial(t, "good.example.com", 443)
		_, _ = conn.Write(begin)
		slow = append(slow, conn, w.box.proxy(t))
	}
	if err := reached(t, other, "good.example.com"); err != nil {
		t.Errorf("the other sandbox: %v", err)
	}
	for _, conn := range slow {
		_ = ended(conn)
	}
	w.net.name("good.example.com", "93.184.216.34")
	w.net.serveTLS(t, "93.184.216.34:443", "good.example.com")
	if err := reached(t, w, "good.example.com"); err != nil {
		t.Errorf("after them: %v", err)
	}
}

// A program that does not read holds its own connection, until that is idle.
func TestAttack22_NeverReading(t *testing.T) {
	c := &clock{}
	w := limited(t, func(l *config.EgressLimits) {}, func(conn net.Conn) { repeat(conn, "x") }, c.use)
	conn := w.box.dial(t, "raw.example.com", 7)
	defer conn.Close()
	eventually(t, "the first bytes", func() bool { _, received := w.server.OpenConnections(); return received > 0 })
	eventually(t, "the end of a connection whose buffers are full", func() bool {
		c.advance(301 * time.Second)
		w.server.Sweep()
		return len(w.log.of(audit.EgressClosed)) > 0
	})
	if reason := why(t, w); !strings.Contains(reason, "idleSeconds") && !strings.Contains(reason, "lifeSeconds") {
		t.Errorf("ended because %q", reason)
	}
}

// Half-closed connections end when their other half does.
func TestAttack22_HalfOpen(t *testing.T) {
	w := limited(t, func(l *config.EgressLimits) {}, func(conn net.Conn) {
		all, _ := io.ReadAll(conn)
		fmt.Fprintf(conn, "%d bytes", len(all))
	})
	conn := w.box.dial(t, "raw.example.com", 7)
	_, _ = conn.Write(make([]byte, 1000))
	_ = conn.(*net.TCPConn).CloseWrite()
	if got := ended(conn); got != "1000 bytes" {
		t.Errorf("got %q", got)
	}
	eventually(t, "the end", func() bool { n, _ := w.server.OpenConnections(); return n == 0 })
}

// When the grant ends, everything of it does.
func TestAttack23_Closed(t *testing.T) {
	w := limited(t, func(l *config.EgressLimits) {}, echo)
	conn := w.box.dial(t, "raw.example.com", 7)
	if !alive(t, conn) {
		t.Fatal("no echo")
	}
	if err := w.server.Close(); err != nil {
		t.Fatal(err)
	}
	if alive(t, conn) {
		t.Error("the connection goes on")
	}
	if len(w.box.at) != 0 {
		t.Errorf("still open: %v", w.box.at)
	}
	if reason := why(t, w); !strings.Contains(reason, "closed") {
		t.Errorf("ended because %q", reason)
	}
}

// The same address means another name in another sandbox.
func TestAttack23_SameAddressElsewhere(t *testing.T) {
	one, two := open(t, allow(t, "one.example.com:7")), open(t, allow(t, "two.example.com:7"))
	for name, w := range map[string]*world{"one": one, "two": two} {
		w.net.name(name+".example.com", "93.184.216.34")
		w.net.serve(t, "93.184.216.34:7", func(conn net.Conn) { fmt.Fprint(conn, name) })
	}
	a, b := one.box.lookup(t, "one.example.com"), two.box.lookup(t, "two.example.com")
	if a != b {
		t.Fatalf("addresses %v and %v", a, b)
	}
	for want, w := range map[string]*world{"one": one, "two": two} {
		conn, err := w.box.connect(a, 7)
		if err != nil {
			t.Fatal(err)
		}
		if got := ended(conn); got != want {
			t.Errorf("%s: %q", want, got)
		}
	}
}

func TestAsk(t *testing.T) {
	answers := make(chan error, 1)
	var asked atomic.Pointer[egress.Question]
	w := open(t, policy(t, func(e *config.Egress) { e.Mode = config.EgressAsk }), func(o *egress.Options) {
		o.Ask = func(_ context.Context, q egress.Question) (bool, error) {
			asked.Store(&q)
			err := <-answers
			return err == nil, err
		}
	})
	w.net.name("new.example.com", "93.184.216.34")
	w.net.serveTLS(t, "93.184.216.34:443", "new.example.com")
	answers <- nil
	if err := reached(t, w, "new.example.com"); err != nil {
		t.Errorf("allowed by a person: %v", err)
	}
	if q := asked.Load(); q.Name != "new.example.com" || q.Port != 443 || q.Exec != "exec-1" || q.Hint == "" {
		t.Errorf("asked %+v", q)
	}
	answers <- errors.New("no answer")
	if err := reached(t, w, "new.example.com"); err == nil {
		t.Error("reached without an answer")
	}
	if got := w.net.connections(); got != "93.184.216.34:443" {
		t.Errorf("connected to %s", got)
	}
}

// Ten thousand connections, as many of them at the same time as the server keeps: no more
// than the limit reach the other side, what waits for a place is bounded, and all are let
// go in the end.
func TestAttack22_TenThousand(t *testing.T) {
	const limit, together, rounds = 64, 1000, 10
	var open, most atomic.Int64
	w := limited(t, func(l *config.EgressLimits) { l.Connections, l.NewPerMinute = limit, 1_000_000 }, func(conn net.Conn) {
		n := open.Add(1)
		for before := most.Load(); n > before && !most.CompareAndSwap(before, n); before = most.Load() {
		}
		echo(conn)
		open.Add(-1)
	})
	a := w.box.lookup(t, "raw.example.com")
	before := runtime.NumGoroutine()
	grown := 0
	for range rounds {
		conns := make([]net.Conn, together)
		var dialling sync.WaitGroup
		for part := range 20 {
			dialling.Go(func() {
				for i := part; i < together; i += 20 {
					conns[i], _ = w.box.connect(a, 7)
				}
			})
		}
		dialling.Wait()
		grown = max(grown, runtime.NumGoroutine()-before)
		for _, conn := range conns {
			if conn != nil {
				_ = conn.Close()
			}
		}
	}
	if most.Load() > limit || most.Load() == 0 {
		t.Errorf("%d connections at the same time", most.Load())
	}
	if bound := limit * 5 * 6; grown > bound { // a handler, two directions, and the servers of the test
		t.Errorf("%d more goroutines", grown)
	}
	eventually(t, "a connection after the flood", func() bool {
		conn, err := w.box.connect(a, 7)
		if err != nil {
			return false
		}
		defer conn.Close()
		return alive(t, conn)
	})
	eventually(t, "the end of the flood", func() bool { n, _ := w.server.OpenConnections(); return n == 0 })
}
