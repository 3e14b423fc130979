package machine_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/atoll-run/atoll/internal/machine"
)

// greeter accepts connections of a listener and writes text to each, until it is closed.
func greeter(t *testing.T, l net.Listener, text string) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, text)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
}

// fetch returns what a process in the sandbox reads from an address.
func fetch(t *testing.T, m *machine.Machine, grant string, to netip.AddrPort) string {
	t.Helper()
	return run(t, m, &machine.Command{Grant: grant, Argv: []string{"python3", "-c", fmt.Sprintf(`
import socket
try:
    print(socket.create_connection((%q, %d)).makefile().read(), end="")
except OSError as e:
    print(type(e).__name__, end="")`, to.Addr(), to.Port())}}).out
}

// grantGate lets the callers of one grant in.
func grantGate(grant string, seen func(machine.Caller)) func(context.Context, machine.Caller) error {
	return func(_ context.Context, c machine.Caller) error {
		if c.Grant != grant {
			return fmt.Errorf("grant %q", c.Grant)
		}
		if seen != nil {
			seen(c)
		}
		return nil
	}
}

// TestNameListeners: each address has a listener of its own, gets only its connections,
// and is closed alone.
func TestNameListeners(t *testing.T) {
	_, m := start(t)
	check(t, m.OpenGrant(patience(t), "g", true))
	port := freePort(t)
	const n = 20
	listeners := map[netip.Addr]*machine.PortListener{}
	callers := make(chan machine.Caller, 2*n)
	for range n {
		l, err := m.Listen(patience(t), port, &machine.PortOptions{Grant: "g", AnyAddress: true, Gate: grantGate("g", func(c machine.Caller) { callers <- c })})
		check(t, err)
		if listeners[l.Address()] != nil || !strings.HasPrefix(l.Address().String(), "127.77.") {
			t.Fatalf("%v was given twice, or makes no sense", l.Address())
		}
		listeners[l.Address()] = l
		greeter(t, l, l.Address().String())
	}
	for a := range listeners {
		to := netip.AddrPortFrom(a, uint16(port))
		if got := fetch(t, m, "g", to); got != a.String() {
			t.Errorf("%v answered %q", a, got)
		}
		if c := <-callers; c.To != to || c.Grant != "g" || c.Exec == "" || c.Port != port {
			t.Errorf("%+v", c)
		}
		if got := fetch(t, m, "", to); got == a.String() {
			t.Errorf("%v answered without a grant", a)
		}
	}
	for a, l := range listeners {
		check(t, l.Close())
		if got := fetch(t, m, "g", netip.AddrPortFrom(a, uint16(port))); got != "ConnectionRefusedError" {
			t.Errorf("after the end: %q", got)
		}
		delete(listeners, a)
		for other := range listeners {
			if got := fetch(t, m, "g", netip.AddrPortFrom(other, uint16(port))); got != other.String() {
				t.Errorf("%v answered %q", other, got)
			}
			break
		}
	}
}

// TestNameListenersShared: two hosts listen on one address, each gets the callers of its
// grant. The same host cannot take it twice.
func TestNameListenersShared(t *testing.T) {
	g, m := start(t)
	other := g.Machine(t, nil)
	port, address := freePort(t), netip.MustParseAddr("127.77.255.1")
	for grant, host := range map[string]*machine.Machine{"a": m, "b": other} {
		check(t, host.OpenGrant(patience(t), grant, true))
		l, err := host.Listen(patience(t), port, &machine.PortOptions{Grant: grant, Address: address, Gate: grantGate(grant, nil)})
		check(t, err)
		greeter(t, l, grant)
		_, err = host.Listen(patience(t), port, &machine.PortOptions{Grant: grant, Address: address})
		wantErr(t, err, machine.ErrPortTaken)
	}
	for _, grant := range []string{"a", "b"} {
		if got := fetch(t, m, grant, netip.AddrPortFrom(address, uint16(port))); got != grant {
			t.Errorf("%s was answered %q", grant, got)
		}
	}
}

// TestNameListenersOnlyOnNames: no other address can be listened on.
func TestNameListenersOnlyOnNames(t *testing.T) {
	_, m := start(t)
	for _, address := range []string{"127.0.0.1", "0.0.0.0", "127.76.255.255", "127.78.0.0", "::1", "::ffff:127.77.0.2", "10.0.0.1"} {
		_, err := m.Listen(patience(t), 4433, &machine.PortOptions{Address: netip.MustParseAddr(address)})
		wantErr(t, err, machine.ErrInvalid)
	}
	_, err := m.Listen(patience(t), 4433, &machine.PortOptions{Address: netip.MustParseAddr("127.77.0.9"), AnyAddress: true})
	wantErr(t, err, machine.ErrInvalid)
}

// TestNameListenersComeBack breaks the wire: all listeners are opened again, on their
// addresses.
func TestNameListenersComeBack(t *testing.T) {
	g, other := start(t)
	cutter := &cutDialer{dial: g.Dial}
	m := machine.New(cutter.open, nil)
	defer m.Close()
	port := freePort(t)
	var addresses []netip.Addr
	for range 5 {
		l, err := m.Listen(patience(t), port, &machine.PortOptions{AnyAddress: true, Gate: open})
		check(t, err)
		addresses = append(addresses, l.Address())
		greeter(t, l, l.Address().String())
	}
	for range 3 {
		cutter.cut()
		for _, a := range addresses {
			eventually(t, "it answers again", func() bool { return fetch(t, other, "", netip.AddrPortFrom(a, uint16(port))) == a.String() })
		}
	}
}

// cutDialer opens connections that can be cut.
type cutDialer struct {
	dial  machine.Dialer
	mu    sync.Mutex
	conns []net.Conn
}

func (d *cutDialer) open(ctx context.Context) (net.Conn, error) {
	conn, err := d.dial(ctx)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conns = append(d.conns, conn)
	return conn, nil
}

func (d *cutDialer) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, conn := range d.conns {
		_ = conn.Close()
	}
	d.conns = nil
}
