package machine_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/wire"
)

// answerer answers every datagram with a prefix and its data, until the port is closed.
func answerer(t *testing.T, m *machine.Machine, port int, grant string) *machine.DatagramConn {
	t.Helper()
	c, err := m.ListenDatagrams(patience(t), port, &machine.PortOptions{Grant: grant, Gate: open})
	check(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			d, err := c.Receive(t.Context())
			if err != nil {
				return
			}
			d.Data = append([]byte(grant+" "), d.Data...)
			_ = c.Send(d)
		}
	}()
	t.Cleanup(func() { _ = c.Close(); <-done })
	return c
}

// query is a program that sends a datagram and prints the answer.
const query = `
import socket, sys
s = socket.socket(socket.%s, socket.SOCK_DGRAM)
s.settimeout(%s)
to = (%q, %d)
if %s: s.connect(to); s.send(b"query")
else: s.sendto(b"query", to)
try: print(s.recv(9000).decode(), end="")
except OSError as e: print(type(e).__name__, end="")
`

func ask(t *testing.T, m *machine.Machine, grant, program string) string {
	t.Helper()
	return run(t, m, &machine.Command{Grant: grant, Argv: []string{"python3", "-c", program}}).out
}

// TestDatagrams: the host of a grant gets the datagrams of its processes, whatever kind
// of socket they have, and can answer them.
func TestDatagrams(t *testing.T) {
	g, m := start(t)
	other, port := g.Machine(t, nil), freePort(t)
	for grant, host := range map[string]*machine.Machine{"a": m, "b": other} {
		check(t, host.OpenGrant(patience(t), grant, true))
		answerer(t, host, port, grant)
	}
	_, err := m.ListenDatagrams(patience(t), port, &machine.PortOptions{Grant: "a"})
	wantErr(t, err, machine.ErrPortTaken)
	for _, socket := range [][2]string{{"AF_INET", "127.0.0.1"}, {"AF_INET6", "::ffff:127.0.0.1"}} {
		for _, connected := range []string{"True", "False"} {
			for _, grant := range []string{"a", "b"} {
				if got := ask(t, m, grant, fmt.Sprintf(query, socket[0], "20", socket[1], port, connected)); got != grant+" query" {
					t.Errorf("%s %s, connected %s: %q", grant, socket, connected, got)
				}
			}
		}
	}
	if got := ask(t, m, "", fmt.Sprintf(query, "AF_INET", "0.5", "127.0.0.1", port, "True")); got != "TimeoutError" {
		t.Errorf("without a grant: %q", got)
	}
}

// TestDatagramSizes: one of wire.MaxDatagram bytes arrives, a larger one is dropped; an
// answer that is too large is refused here.
func TestDatagramSizes(t *testing.T) {
	_, m := start(t)
	port := freePort(t)
	c, err := m.ListenDatagrams(patience(t), port, &machine.PortOptions{Gate: open})
	check(t, err)
	defer c.Close()
	ask(t, m, "", fmt.Sprintf(`
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for n in (%d, %d): s.sendto(b"x" * n, ("127.0.0.1", %d))
`, wire.MaxDatagram+1, wire.MaxDatagram, port))
	d, err := c.Receive(patience(t))
	check(t, err)
	if len(d.Data) != wire.MaxDatagram || !d.From.Addr().IsLoopback() {
		t.Errorf("%d bytes from %v", len(d.Data), d.From)
	}
	d.Data = append(d.Data, 'x')
	wantErr(t, c.Send(d), machine.ErrInvalid)
	d.Data, d.From = nil, netip.MustParseAddrPort("10.0.0.1:53")
	wantErr(t, c.Send(d), machine.ErrInvalid)
}

// insist is a program that sends a datagram again until it is answered.
const insist = `
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(0.1)
while True:
    s.sendto(b"last", ("127.0.0.1", %d))
    try: print(s.recv(100).decode(), end=""); break
    except TimeoutError: pass
`

// TestDatagramFlood sends 10,000 datagrams that nothing receives: at most what queues and
// the stream hold is kept, commands go on, and the port still works.
func TestDatagramFlood(t *testing.T) {
	_, m := start(t)
	port := freePort(t)
	c, err := m.ListenDatagrams(patience(t), port, &machine.PortOptions{Gate: open})
	check(t, err)
	defer c.Close()
	const flood = `
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(10000): s.sendto(b"x" * %d, ("127.0.0.1", %d))
`
	before, err := m.Info(patience(t))
	check(t, err)
	ask(t, m, "", fmt.Sprintf(flood, wire.MaxDatagram, port))
	after, err := m.Info(patience(t))
	check(t, err)
	if grown := after.RSS - before.RSS; grown > 16<<20 {
		t.Errorf("the guest grew by %d MiB", grown>>20)
	}
	answered := make(chan string, 1)
	go func() { answered <- ask(t, m, "", fmt.Sprintf(insist, port)) }()
	kept := 0
	for last := false; !last; kept++ {
		d, err := c.Receive(patience(t))
		check(t, err)
		if last = string(d.Data) == "last"; last {
			check(t, c.Send(d))
		}
	}
	if got := <-answered; got != "last" {
		t.Errorf("%q", got)
	}
	if most := 3*wire.MaxDatagramQueue + wire.Window/wire.MaxDatagram; kept > most {
		t.Errorf("%d datagrams were kept, more than %d", kept, most)
	}
}

// TestDatagramsComeBack breaks the wire: the port is opened again over the next.
func TestDatagramsComeBack(t *testing.T) {
	g, other := start(t)
	cutter := &cutDialer{dial: g.Dial}
	m := machine.New(cutter.open, nil)
	defer m.Close()
	port := freePort(t)
	answerer(t, m, port, "")
	for range 3 {
		eventually(t, "it answers", func() bool {
			return strings.TrimSpace(ask(t, other, "", fmt.Sprintf(query, "AF_INET", "1", "127.0.0.1", port, "True"))) == "query"
		})
		cutter.cut()
	}
}
