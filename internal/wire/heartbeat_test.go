package wire

import (
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// silent is a host's Mux to a guest that reads, and never answers.
// It counts what it reads.
func silent(t *testing.T, keepAlive, timeout time.Duration) (*Mux, *atomic.Int64) {
	t.Helper()
	ours, theirs := net.Pipe()
	read := new(atomic.Int64)
	go func() {
		buf := make([]byte, 64)
		for {
			n, err := theirs.Read(buf)
			if err != nil {
				return
			}
			read.Add(int64(n))
		}
	}()
	session, err := hostMux(ours, keepAlive, timeout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close(); _ = theirs.Close() })
	return session, read
}

// maxSilence is how long a guest may be silent while something waits for it.
const maxSilence = 15 * time.Second

// TestSilentGuestLosesItsWire: what waits for a guest that does not answer,
// on a stream or on a direct wire, learns of it.
func TestSilentGuestLosesItsWire(t *testing.T) {
	if KeepAlive+WriteTimeout > maxSilence {
		t.Errorf("a silent guest is noticed after %v, and not within %v", KeepAlive+WriteTimeout, maxSilence)
	}
	waiters := map[string]func(*testing.T, *Mux){
		"on a stream": func(t *testing.T, s *Mux) {
			t.Helper()
			if _, err := s.Open(); err != nil {
				t.Fatal(err)
			}
		},
		"on a direct wire": func(_ *testing.T, s *Mux) { s.AddWaiter() },
	}
	for name, wait := range waiters {
		t.Run(name, func(t *testing.T) {
			session, _ := silent(t, 10*time.Millisecond, 20*time.Millisecond)
			wait(t, session)
			<-session.Done()
		})
	}
}

// TestIdleWireSendsNothing: a wire on which nothing waits carries nothing, and is not
// given up.
func TestIdleWireSendsNothing(t *testing.T) {
	session, read := silent(t, time.Millisecond, 2*time.Millisecond)
	time.Sleep(20 * time.Millisecond) // long enough for several pings
	if n := read.Load(); n != 0 || session.session.IsClosed() {
		t.Errorf("%d bytes were sent on an idle wire", n)
	}
}

// TestHeartbeat: a guest that answers is pinged again, as long as something
// waits, and no longer.
func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var awaited atomic.Bool
		var asked atomic.Int64
		p := newHeartbeat(time.Second, awaited.Load, func() error { asked.Add(1); return nil }, func() { t.Error("it was given up") })
		for round := range 3 {
			awaited.Store(true)
			p.start()
			p.start()
			time.Sleep(10*time.Second + time.Millisecond)
			awaited.Store(false)
			time.Sleep(time.Minute)
			if n := int(asked.Load()); n != 10*(round+1) {
				t.Errorf("round %d: it was asked %d times", round, n)
			}
		}
	})
}
