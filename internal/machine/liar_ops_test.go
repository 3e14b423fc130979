package machine_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/wire"
)

// processCalls are the operations on processes, grants and the guest itself.
var processCalls = map[string]func(context.Context, *machine.Machine) error{
	"ping": func(ctx context.Context, m *machine.Machine) error { return m.Ping(ctx) },
	"info": func(ctx context.Context, m *machine.Machine) error { return second(m.Info(ctx)) },
	"exec": func(ctx context.Context, m *machine.Machine) error {
		return second(m.Exec(ctx, &machine.Command{Argv: []string{"x"}, Timeout: time.Second, Grace: time.Millisecond}))
	},
	"start": func(ctx context.Context, m *machine.Machine) error {
		return second(m.Start(ctx, &machine.Command{Argv: []string{"x"}}))
	},
	"list":   func(ctx context.Context, m *machine.Machine) error { return second(m.Processes(ctx)) },
	"status": func(ctx context.Context, m *machine.Machine) error { return second(m.Process(ctx, "p")) },
	"wait":   func(ctx context.Context, m *machine.Machine) error { return second(m.Wait(ctx, "p")) },
	"write":  func(ctx context.Context, m *machine.Machine) error { return m.Write(ctx, "p", []byte("x"), true) },
	"signal": func(ctx context.Context, m *machine.Machine) error { return m.Signal(ctx, "p", "SIGINT", true) },
	"resize": func(ctx context.Context, m *machine.Machine) error { return m.Resize(ctx, "p", machine.Size{}) },
	"end":    func(ctx context.Context, m *machine.Machine) error { return m.End(ctx, "p", time.Millisecond) },
	"forget": func(ctx context.Context, m *machine.Machine) error { return m.Forget(ctx, "p") },
	"logs": func(ctx context.Context, m *machine.Machine) error {
		return second(m.Logs(ctx, "p", machine.LogRequest{}))
	},
	"open a grant": func(ctx context.Context, m *machine.Machine) error {
		return m.OpenGrant(ctx, "g", false)
	},
	"end a grant": func(ctx context.Context, m *machine.Machine) error { return m.EndGrant(ctx, "g") },
}

// greetedNow plays an honest handshake of the newest version, then a session with
// lies in the streams.
func greetedNow(play lie) liar {
	return func(conn net.Conn) {
		if _, err := wire.ReadHello(conn); err != nil {
			return
		}
		if wire.WriteWelcome(conn, &wire.Welcome{Version: wire.MaxVersion, Boot: "liar"}) != nil {
			return
		}
		serveStreams(conn, play)
	}
}

// TestGuestsThatDieInTheMiddle break off every operation that is not about files:
// at once, within a frame's header, and within a frame. The caller gets one error,
// of a kind that it can act on.
func TestGuestsThatDieInTheMiddle(t *testing.T) {
	deaths := map[string][]byte{
		"at once":     nil,
		"half header": {byte(wire.FrameResult), 0},
		"half frame":  raw(wire.FrameResult, 1000, "{"),
		"half exit":   raw(wire.FrameExit, 1000, "{"),
	}
	for op, call := range processCalls {
		for name, last := range deaths {
			t.Run(op+"/"+name, func(t *testing.T) {
				t.Parallel()
				m := lying(t, greetedNow(func(conn net.Conn, _ *wire.Request) { _, _ = conn.Write(last) }), &machine.Options{MaxBreaks: 4})
				err := call(patience(t), m)
				if !errors.Is(err, machine.ErrLost) && !errors.Is(err, machine.ErrBroken) {
					t.Errorf("%v", err)
				}
			})
		}
	}
}

// TestLyingProcessTables tells of processes that cannot be.
func TestLyingProcessTables(t *testing.T) {
	page := func(last string, n int) wire.Listing {
		listing := wire.Listing{More: true}
		for i := range n {
			listing.Processes = append(listing.Processes, wire.Status{ID: fmt.Sprintf("%s%03d", last, i)})
		}
		return listing
	}
	for name, answer := range map[string]func(*wire.Target) wire.Listing{
		"a million rows": func(t *wire.Target) wire.Listing { return page(t.ID+"x", wire.ListPage) },
		"the same again": func(*wire.Target) wire.Listing { return page("", 2) },
		"one id twice":   func(*wire.Target) wire.Listing { return wire.Listing{Processes: []wire.Status{{ID: "a"}, {ID: "a"}}} },
		"without any id": func(*wire.Target) wire.Listing { return wire.Listing{Processes: []wire.Status{{}}} },
		"not in order":   func(*wire.Target) wire.Listing { return wire.Listing{Processes: []wire.Status{{ID: "b"}, {ID: "a"}}} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := lying(t, greetedNow(func(conn net.Conn, req *wire.Request) {
				_ = wire.WriteJSON(conn, wire.FrameResult, answer(req.Target))
			}), nil)
			if found, err := m.Processes(patience(t)); !errors.Is(err, machine.ErrBroken) {
				t.Errorf("%d processes, %v", len(found), err)
			}
		})
	}
}

// TestLiesAboutGrants: what a guest says of a caller is a name or nothing.
func TestLiesAboutGrants(t *testing.T) {
	for name, id := range map[string]string{"a path": "../g", "control characters": "g\x1b[31m", "endless": strings.Repeat("g", wire.MaxID+1)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := lying(t, greetedNow(func(conn net.Conn, req *wire.Request) {
				_ = wire.WriteJSON(conn, wire.FrameStarted, wire.Caller{Port: 80, Peer: "127.0.0.1:1", Grant: id})
			}), nil)
			_, err := m.Dial(patience(t), "tcp", 80)
			wantErr(t, err, machine.ErrBroken)
		})
	}
}
