package machine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/testkit/machinetest"
	"github.com/atoll-run/atoll/internal/wire"
)

// TestCapOnWires has more hosts knock than a guest serves. One that leaves makes
// room.
func TestCapOnWires(t *testing.T) {
	g := machinetest.Start(t, nil)
	var wires []net.Conn
	greet := func(i int) error {
		conn, err := g.Dial(t.Context())
		check(t, err)
		hello := &wire.Hello{Min: wire.MinVersion, Max: wire.MaxVersion, Client: fmt.Sprintf("host-%d", i), Epoch: 1, Kind: wire.KindControl}
		if _, err := wire.Handshake(conn, hello); err != nil {
			conn.Close()
			return err
		}
		wires = append(wires, conn)
		return nil
	}
	check(t, g.Machine(t, nil).Ping(patience(t))) // it listens, and has its first wire
	n := 0
	for ; n < wire.MaxWires-1; n++ {
		check(t, greet(n))
	}
	refusal, ok := errors.AsType[*wire.Error](greet(n))
	if !ok || refusal.Code != wire.CodeTooMany {
		t.Errorf("wire %d: %v", wire.MaxWires+1, refusal)
	}
	wires[0].Close()
	eventually(t, "there is room", func() bool { n++; return greet(n) == nil })
	for _, conn := range wires {
		conn.Close()
	}
}

// TestCapOnListeners opens more ports than a guest listens on.
func TestCapOnListeners(t *testing.T) {
	_, m := start(t)
	var open []*machine.PortListener
	listen := func() error {
		l, err := m.Listen(patience(t), freePort(t), &machine.PortOptions{MaxConns: 1})
		if err == nil {
			open = append(open, l)
		}
		return err
	}
	for len(open) < wire.MaxListeners {
		if err := listen(); err != nil && !errors.Is(err, machine.ErrPortTaken) {
			t.Fatal(err)
		}
	}
	wantErr(t, listen(), machine.ErrBusy)
	check(t, open[0].Close())
	eventually(t, "there is room", func() bool { return listen() == nil })
	for _, l := range open {
		check(t, l.Close())
	}
}

// TestCapOnConnections opens more connections than a guest carries, from as many
// hosts as that takes: one alone may have a third of them.
func TestCapOnConnections(t *testing.T) {
	g := machinetest.Start(t, nil)
	inside, err := net.Listen("tcp", "127.0.0.1:0") // guests of tests share the host's network
	check(t, err)
	defer inside.Close()
	go func() {
		for {
			conn, err := inside.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
		}
	}()
	port := inside.Addr().(*net.TCPAddr).Port
	var conns []net.Conn
	var m *machine.Machine
	for i := range wire.MaxPortConns {
		if i%128 == 0 {
			m = g.Machine(t, nil)
		}
		conn, err := m.Dial(patience(t), "tcp", port)
		check(t, err)
		conns = append(conns, conn)
	}
	last := g.Machine(t, nil)
	_, err = last.Dial(patience(t), "tcp", port)
	wantErr(t, err, machine.ErrBusy)
	check(t, conns[0].Close())
	eventually(t, "there is room", func() bool {
		conn, err := last.Dial(patience(t), "tcp", port)
		if err == nil {
			conns = append(conns, conn)
		}
		return err == nil
	})
	for _, conn := range conns[1:] {
		check(t, conn.Close())
	}
}

// TestStuckPeer has a guest that completes the handshake and then reads nothing.
func TestStuckPeer(t *testing.T) {
	t.Parallel()
	stuck := greeted(func(conn net.Conn) {
		for { // until this side has had enough
			if _, err := conn.Write(mux(2, 2, 0, 0)); err != nil {
				return
			}
			time.Sleep(time.Second)
		}
	})
	killed := make(chan struct{}, 8)
	m := lying(t, stuck, &machine.Options{Kill: func(context.Context) error { killed <- struct{}{}; return nil }})
	if err := m.Ping(patience(t)); !errors.Is(err, machine.ErrLost) {
		t.Errorf("ping: %v", err)
	}
	input := bytes.NewReader(make([]byte, 4<<20))
	_, err := m.Exec(patience(t), &machine.Command{Argv: []string{"cat"}, Stdin: input, Timeout: 100 * time.Millisecond, Grace: time.Millisecond})
	if !errors.Is(err, machine.ErrLost) && !errors.Is(err, machine.ErrBroken) {
		t.Errorf("exec: %v", err)
	}
	select {
	case <-killed:
	default:
		t.Error("the sandbox was not killed from outside")
	}
}

// TestOneBrokenSandboxDoesNotDelayAnother floods the host from one guest while
// another is used.
func TestOneBrokenSandboxDoesNotDelayAnother(t *testing.T) {
	_, good := start(t)
	bad := lying(t, answering(func(stream net.Conn, _ *wire.Request) {
		flood(stream, raw(wire.FrameStdout, 60000, strings.Repeat("x", 60000)))
	}), nil)
	ctx, cancel := context.WithCancel(t.Context())
	flooded := make(chan struct{})
	go func() {
		defer close(flooded)
		_, _ = bad.Exec(ctx, &machine.Command{Argv: []string{"x"}, Grace: time.Millisecond})
	}()
	for range 50 {
		if got := sh(t, good, "echo fine"); got.out != "fine\n" {
			t.Errorf("%q", got.out)
		}
	}
	cancel()
	<-flooded
}
