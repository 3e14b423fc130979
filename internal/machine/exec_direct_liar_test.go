package machine_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/wire"
)

// lyingDirectly plays an honest guest whose direct connections lie. The commands that
// come over streams end at once; started counts them.
func lyingDirectly(started *atomic.Int64, lie liar) liar {
	honest := func(stream net.Conn, req *wire.Request) {
		switch req.Op {
		case wire.OpFileDirect:
			_ = wire.WriteJSON(stream, wire.FrameResult, wire.Direct{Token: "token"})
		case wire.OpExec:
			started.Add(1)
			_ = wire.WriteJSON(stream, wire.FrameExit, wire.Exit{})
		case wire.OpAttach:
			_ = wire.WriteJSON(stream, wire.FrameError, wire.Fail(wire.CodeNoProcess, "there is none"))
		default:
			_ = wire.WriteJSON(stream, wire.FrameResult, struct{}{})
		}
	}
	return func(conn net.Conn) {
		hello, err := wire.ReadHello(conn)
		if err != nil || wire.WriteWelcome(conn, &wire.Welcome{Version: wire.MaxVersion, Boot: "liar"}) != nil {
			return
		}
		if hello.Kind != wire.KindDirect {
			serveStreams(conn, honest)
			return
		}
		if _, err := wire.NewReader(conn).Request(); err == nil {
			lie(conn)
		}
	}
}

// TestLyingDirectWires: a guest that breaks the protocol on a direct connection is
// broken; one that only breaks the connection gets the command over a stream, once.
func TestLyingDirectWires(t *testing.T) {
	write := func(b []byte) liar { return func(conn net.Conn) { _, _ = conn.Write(b) } }
	broken := map[string]liar{
		"endless frame":    write(raw(wire.FrameStdout, 1<<31, "x")),
		"unknown frame":    write(raw(99, 0, "")),
		"malformed exit":   write(raw(wire.FrameExit, 2, "{{")),
		"malformed error":  write(raw(wire.FrameError, 2, "{{")),
		"over the limit":   write(raw(wire.FrameStdout, 20, "01234567890123456789")),
		"impossible gap":   write(raw(wire.FrameGap, 24, `{"stream":17,"bytes":-1} `)),
		"gap of no stream": write(raw(wire.FrameGap, 23, `{"stream":5,"bytes":10}`)),
	}
	for name, lie := range broken {
		t.Run(name, func(t *testing.T) {
			var started atomic.Int64
			m := lying(t, lyingDirectly(&started, lie), nil)
			eventually(t, "the guest is found out", func() bool {
				_, err := m.Exec(patience(t), &machine.Command{Argv: []string{"x"}, OutputLimit: 10})
				if err != nil && !errors.Is(err, machine.ErrBroken) {
					t.Fatalf("%v", err)
				}
				return err != nil
			})
		})
	}
	for name, lie := range map[string]liar{
		"hangs up":               func(net.Conn) {},
		"hangs up in the middle": write(raw(wire.FrameStdout, 100, "part")[:6]),
		"says it runs":           write(raw(wire.FrameStarted, 2, "{}")),
	} {
		t.Run(name, func(t *testing.T) {
			var started atomic.Int64
			m := lying(t, lyingDirectly(&started, lie), &machine.Options{MaxBreaks: 1000})
			const commands = 20
			for range commands {
				if _, err := m.Exec(patience(t), &machine.Command{Argv: []string{"x"}}); err != nil {
					t.Fatal(err)
				}
			}
			if started.Load() != commands {
				t.Errorf("%d commands were started over streams, want %d", started.Load(), commands)
			}
		})
	}
}

// TestCloseWaitsForItsOwnDials: what a machine dials ahead of need is over when
// it is closed, also where a dial takes its time to give up.
func TestCloseWaitsForItsOwnDials(t *testing.T) {
	var started atomic.Int64
	var over atomic.Bool
	dialling := make(chan struct{})
	play := lyingDirectly(&started, func(net.Conn) {})
	m := machine.New(func(ctx context.Context) (net.Conn, error) {
		if started.Load() > 0 {
			close(dialling)
			<-ctx.Done()
			time.Sleep(50 * time.Millisecond)
			over.Store(true)
			return nil, ctx.Err()
		}
		ours, theirs, err := socketPair()
		if err == nil {
			go func() {
				defer theirs.Close()
				play(theirs)
			}()
		}
		return ours, err
	}, nil)
	for range 3 { // the third is worth a direct connection
		if _, err := m.Exec(patience(t), &machine.Command{Argv: []string{"x"}}); err != nil {
			t.Fatal(err)
		}
	}
	<-dialling
	_ = m.Close()
	if !over.Load() {
		t.Error("the machine is closed, and still dials")
	}
}
