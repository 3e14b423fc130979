package machine_test

import (
	"encoding/json"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/wire"
)

// egressGuest is a guest with all features that answers the operations of egress with
// given frames, and stays on the stream.
type egressGuest struct {
	add      string   // answer to add; "" is an honest one
	accepted []string // answers to the first accepts
	sent     [][]byte // what follows Started of datagrams
}

func (g *egressGuest) serve(conn net.Conn) {
	if _, err := wire.ReadHello(conn); err != nil {
		return
	}
	if wire.WriteWelcome(conn, &wire.Welcome{Version: wire.MaxVersion, Boot: "liar", Features: wire.AllFeatures()}) != nil {
		return
	}
	answers := make(chan string, len(g.accepted))
	for _, a := range g.accepted {
		answers <- a
	}
	serveFrames(conn, func(stream net.Conn, r *wire.Reader, req *wire.Request) { g.answer(stream, r, req, answers) })
}

func (g *egressGuest) answer(stream net.Conn, r *wire.Reader, req *wire.Request, accepts <-chan string) {
	switch req.Op {
	case wire.OpPortAdd:
		answer := g.add
		if answer == "" {
			answer = `{"ipv4":true,"address":"127.77.1.1"}`
		}
		_ = wire.WriteFrame(stream, wire.FrameResult, []byte(answer))
		return
	case wire.OpPortAccept:
		select {
		case a := <-accepts:
			_ = wire.WriteFrame(stream, wire.FrameStarted, []byte(a))
		default: // no more
		}
	case wire.OpPortGroup:
		_ = wire.WriteJSON(stream, wire.FrameStarted, wire.Bound{})
	case wire.OpPortDatagrams:
		_ = wire.WriteJSON(stream, wire.FrameStarted, wire.Bound{})
		for _, frame := range g.sent {
			_, _ = stream.Write(frame)
		}
	default:
		_ = wire.WriteJSON(stream, wire.FrameResult, struct{}{})
		return
	}
	_, _ = r.Frame() // until the host closes the stream
}

// TestLyingAddresses: a guest that listens elsewhere than it was told is broken.
func TestLyingAddresses(t *testing.T) {
	for name, add := range map[string]string{
		"another address": `{"address":"127.77.1.2"}`, "127.0.0.1": `{"address":"127.0.0.1"}`, "mapped": `{"address":"::ffff:127.77.1.1"}`,
		"an address of the world": `{"address":"192.0.2.1"}`, "none": `{}`, "no address": `{"address":"a\u001b[2J"}`, "no JSON": `{`, "a list": `[]`,
	} {
		t.Run(name, func(t *testing.T) {
			m := lying(t, (&egressGuest{add: add}).serve, nil)
			_, err := m.Listen(patience(t), 443, &machine.PortOptions{Address: netip.MustParseAddr("127.77.1.1"), Gate: open})
			wantErr(t, err, machine.ErrBroken)
			if strings.Contains(err.Error(), "\x1b") {
				t.Errorf("%q is not safe to show", err)
			}
			wantErr(t, m.Ping(patience(t)), machine.ErrBroken)
		})
	}
}

// TestLyingCallers: a guest that reports a caller that cannot be is broken, and the
// connection goes to no listener.
func TestLyingCallers(t *testing.T) {
	for name, caller := range map[string]string{
		"no destination":      `{"port":443,"peer":"127.0.0.1:9"}`,
		"another destination": `{"port":443,"peer":"127.0.0.1:9","to":"127.0.0.1:443"}`,
		"another port":        `{"port":443,"peer":"127.0.0.1:9","to":"127.77.1.1:80"}`,
		"from elsewhere":      `{"port":443,"peer":"192.0.2.1:9","to":"127.77.1.1:443"}`,
		"an exec":             `{"port":443,"peer":"127.0.0.1:9","to":"127.77.1.1:443","exec":"../x"}`,
		"a grant":             `{"port":443,"peer":"127.0.0.1:9","to":"127.77.1.1:443","grant":"\u0000"}`,
	} {
		t.Run(name, func(t *testing.T) {
			m := lying(t, (&egressGuest{accepted: []string{caller}}).serve, nil)
			l, err := m.Listen(patience(t), 443, &machine.PortOptions{AnyAddress: true, Gate: open})
			check(t, err)
			_, err = l.Accept()
			wantErr(t, err, machine.ErrBroken)
			check(t, l.Close())
		})
	}
}

// TestCallersOfNoListener: a connection to an address of names that has no listener any
// more is reset; the next one arrives.
func TestCallersOfNoListener(t *testing.T) {
	guest := &egressGuest{accepted: []string{
		`{"port":443,"peer":"127.0.0.1:9","to":"127.77.9.9:443"}`, `{"port":80,"peer":"127.0.0.1:9","to":"127.77.1.1:80"}`,
		`{"port":443,"peer":"127.0.0.1:10","to":"127.77.1.1:443","exec":"e"}`,
	}}
	m := lying(t, guest.serve, nil)
	l, err := m.Listen(patience(t), 443, &machine.PortOptions{AnyAddress: true, Gate: open})
	check(t, err)
	defer l.Close()
	conn, err := l.Accept()
	check(t, err)
	defer conn.Close()
	if got := conn.RemoteAddr().String(); got != "127.0.0.1:10" {
		t.Errorf("from %s", got)
	}
	if who, ok := conn.(interface{ ExecID() string }); !ok || who.ExecID() != "e" {
		t.Error("the exec is not known")
	}
}

// datagramFrame is a frame of a datagram with any content.
func datagramFrame(content string) []byte {
	return raw(wire.FrameDatagram, uint32(len(content)), content)
}

// TestLyingDatagrams: a guest that sends what no honest one does is broken, and nothing
// of it is received.
func TestLyingDatagrams(t *testing.T) {
	large, err := json.Marshal(wire.Datagram{From: "127.0.0.1:9", Grant: "g", Data: make([]byte, wire.MaxDatagram+1)})
	check(t, err)
	for name, frame := range map[string][]byte{
		"from elsewhere":      datagramFrame(`{"from":"192.0.2.1:9","grant":"g","data":""}`),
		"from nowhere":        datagramFrame(`{"from":"","grant":"g","data":""}`),
		"of another grant":    datagramFrame(`{"from":"127.0.0.1:9","grant":"h","data":""}`),
		"of no grant":         datagramFrame(`{"from":"127.0.0.1:9","data":""}`),
		"a malformed exec":    datagramFrame(`{"from":"127.0.0.1:9","grant":"g","exec":"/","data":""}`),
		"too large":           datagramFrame(string(large)),
		"no JSON":             datagramFrame(`{`),
		"no data":             datagramFrame(`{"from":"127.0.0.1:9","grant":"g","data":"%"}`),
		"data of a stream":    raw(wire.FrameData, 1, "x"),
		"a result":            raw(wire.FrameResult, 2, "{}"),
		"more than a frame":   raw(wire.FrameDatagram, wire.MaxFrame+1, ""),
		"an unreadable error": raw(wire.FrameError, 1, "x"),
	} {
		t.Run(name, func(t *testing.T) {
			m := lying(t, (&egressGuest{sent: [][]byte{frame}}).serve, nil)
			c, err := m.ListenDatagrams(patience(t), 53, &machine.PortOptions{Grant: "g", Gate: open})
			check(t, err)
			d, err := c.Receive(patience(t))
			wantErr(t, err, machine.ErrBroken)
			if len(d.Data) > 0 || d.From.IsValid() {
				t.Errorf("received %+v", d)
			}
			check(t, c.Close())
		})
	}
}

// TestDatagramsWithoutEnd: a guest that sends datagrams for ever fills no memory while
// nothing receives them, and can be left.
func TestDatagramsWithoutEnd(t *testing.T) {
	frame := datagramFrame(`{"from":"127.0.0.1:9","grant":"g","data":"aGVsbG8="}`)
	m := lying(t, func(conn net.Conn) {
		guest := &egressGuest{sent: [][]byte{}}
		for range 10_000 {
			guest.sent = append(guest.sent, frame)
		}
		guest.serve(conn)
	}, nil)
	c, err := m.ListenDatagrams(patience(t), 53, &machine.PortOptions{Grant: "g", Gate: open})
	check(t, err)
	for range 100 {
		d, err := c.Receive(patience(t))
		check(t, err)
		if string(d.Data) != "hello" {
			t.Fatalf("%q", d.Data)
		}
	}
	check(t, c.Close())
	_, err = c.Receive(patience(t))
	wantErr(t, err, net.ErrClosed)
}

// TestGateOfDatagrams: without a gate nothing is received.
func TestGateOfDatagrams(t *testing.T) {
	frame := datagramFrame(`{"from":"127.0.0.1:9","data":"aGVsbG8="}`)
	last := datagramFrame(`{"from":"127.0.0.1:10","data":""}`)
	for name, gate := range map[string]*machine.PortOptions{
		"none": nil,
		"one":  openPort(grantGate("", func(c machine.Caller) { _ = c.To })),
	} {
		t.Run(name, func(t *testing.T) {
			broken := datagramFrame(`{`) // what ends the test
			m := lying(t, (&egressGuest{sent: [][]byte{frame, last, broken}}).serve, nil)
			c, err := m.ListenDatagrams(patience(t), 53, gate)
			check(t, err)
			received := 0
			for {
				_, err := c.Receive(patience(t))
				if errors.Is(err, machine.ErrBroken) {
					break
				}
				check(t, err)
				received++
			}
			if want := map[string]int{"none": 0, "one": 2}[name]; received != want {
				t.Errorf("%d were received", received)
			}
			check(t, c.Close())
		})
	}
}

// TestNameListenersHaveALimit: one more listener than wire.MaxNameListeners is refused by
// name, and a closed one makes room. The guest is as it was in the end.
func TestNameListenersHaveALimit(t *testing.T) {
	_, m := start(t)
	first, err := m.Listen(patience(t), freePort(t), &machine.PortOptions{AnyAddress: true})
	check(t, err)
	check(t, first.Close()) // the wire for it stays
	before, err := m.Info(patience(t))
	check(t, err)
	port := freePort(t)
	var all []*machine.PortListener
	for len(all) < wire.MaxNameListeners {
		l, err := m.Listen(patience(t), port, &machine.PortOptions{AnyAddress: true, Gate: open})
		check(t, err)
		all = append(all, l)
	}
	_, err = m.Listen(patience(t), port, &machine.PortOptions{AnyAddress: true})
	wantErr(t, err, machine.ErrBusy)
	check(t, all[0].Close())
	l, err := m.Listen(patience(t), port, &machine.PortOptions{AnyAddress: true})
	check(t, err)
	for _, l := range append(all[1:], l) {
		check(t, l.Close())
	}
	eventually(t, "the guest is as it was", func() bool {
		after, err := m.Info(patience(t))
		check(t, err)
		return after.Descriptors <= before.Descriptors+2 && after.Goroutines <= before.Goroutines+2
	})
}

// TestNameListenersByTheThousand opens and closes names as a flood of lookups would:
// addresses are not used again soon, and nothing is left.
func TestNameListenersByTheThousand(t *testing.T) {
	_, m := start(t)
	keep, err := m.Listen(patience(t), freePort(t), &machine.PortOptions{AnyAddress: true})
	check(t, err)
	defer keep.Close()
	port, seen := freePort(t), map[string]bool{}
	for n := range 2000 {
		l, err := m.Listen(patience(t), port, &machine.PortOptions{AnyAddress: true})
		check(t, err)
		if a := l.Address().String(); seen[a] || strings.HasPrefix(a, "127.77.0.") || strings.HasPrefix(a, "127.77.255.") {
			t.Fatalf("listener %d has %s", n, a)
		}
		seen[l.Address().String()] = true
		check(t, l.Close())
	}
	info, err := m.Info(patience(t))
	check(t, err)
	if info.Descriptors > 200 {
		t.Errorf("%d descriptors are open", info.Descriptors)
	}
}
