package machine_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/wire"
)

// warm runs commands until direct wires serve them: more than the first wire
// was dialled, and no more are.
func warm(t *testing.T, c *cutter, m *machine.Machine) {
	t.Helper()
	eventually(t, "direct wires serve commands", func() bool {
		before := c.count()
		for range 5 {
			sh(t, m, "true")
		}
		return before > 1 && c.count() == before
	})
}

// TestShortCommands runs commands of every kind over direct wires: what comes of
// them is what comes over streams.
func TestShortCommands(t *testing.T) {
	c, m := cuttable(t, nil)
	warm(t, c, m)
	for range 20 {
		got := sh(t, m, "echo out; echo err >&2; exit 3")
		if got.out != "out\n" || got.err != "err\n" || got.ExitCode != 3 || got.Stdout.Total != 4 || got.MaxRSS == 0 {
			t.Fatalf("%+v", got)
		}
		if _, err := m.Exec(patience(t), &machine.Command{Argv: []string{"no-such-program"}}); !errors.Is(err, machine.ErrNotFound) {
			t.Fatalf("%v", err)
		}
	}
}

// TestShortCommandsThatAreNot take long, write much or leave something behind.
func TestShortCommandsThatAreNot(t *testing.T) {
	c, m := cuttable(t, nil)
	warm(t, c, m)
	for range 3 {
		if got := sh(t, m, "echo a; sleep 0.2; echo b; exit 5"); got.out != "a\nb\n" || got.ExitCode != 5 {
			t.Errorf("slow: %+v", got)
		}
		if got := sh(t, m, "head -c 3000000 /dev/zero | tr '\\0' x"); got.out != strings.Repeat("x", 3_000_000) {
			t.Errorf("much: %d bytes, %+v", len(got.out), got.Result)
		}
		got := run(t, m, &machine.Command{Argv: []string{"sh", "-c", "(setsid sleep 1000 &); echo done"}, EndTree: true, Grace: time.Millisecond})
		if got.out != "done\n" || got.Left {
			t.Errorf("with a child: %+v", got)
		}
		if got := run(t, m, &machine.Command{Argv: []string{"head", "-c", "1000000", "/dev/zero"}, OutputLimit: 1000}); len(got.out) != 1000 || got.Stdout.Lost != 999_000 {
			t.Errorf("limited: %d bytes, %+v", len(got.out), got.Stdout)
		}
	}
	if left := alive(t, m); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// TestShortCommandsAtOnce: each gets its own output, and the guest forgets them
// when the host has it.
func TestShortCommandsAtOnce(t *testing.T) {
	_, m := start(t)
	var wg sync.WaitGroup
	for worker := range 16 {
		wg.Go(func() {
			for i := range 10 {
				want := fmt.Sprintf("%d-%d\n", worker, i)
				var out bytes.Buffer
				result, err := m.Exec(patience(t), &machine.Command{Argv: []string{"echo", strings.TrimSpace(want)}, Stdout: &out, EndTree: true})
				if err != nil || result.ExitCode != 0 || out.String() != want {
					t.Errorf("%q: %q %+v %v", want, out.String(), result, err)
				}
			}
		})
	}
	wg.Wait()
	eventually(t, "the guest has forgotten them", func() bool {
		info, err := m.Info(patience(t))
		return err == nil && info.Processes == 0
	})
}

// direct opens a direct wire of the control wire by hand.
func direct(t *testing.T, dial func() (net.Conn, error), control *wire.Mux, client string) net.Conn {
	t.Helper()
	stream, err := control.Open()
	check(t, err)
	defer stream.Close()
	check(t, wire.WriteRequest(stream, &wire.Request{Op: wire.OpFileDirect, File: &wire.File{}}))
	frame, err := wire.NewReader(stream).Frame()
	check(t, err)
	var token wire.Direct
	check(t, frame.Decode(&token))
	conn, err := dial()
	check(t, err)
	t.Cleanup(func() { conn.Close() })
	_, err = wire.Handshake(conn, &wire.Hello{Min: wire.MinVersion, Max: wire.MaxVersion, Client: client, Epoch: 2, Kind: wire.KindDirect, Token: token.Token})
	check(t, err)
	return conn
}

// TestDirectWiresRefuse: a direct wire takes nothing that needs a stream, and
// goes on after that; one that does not speak the protocol ends alone.
func TestDirectWiresRefuse(t *testing.T) {
	g, m := start(t)
	check(t, m.Ping(patience(t))) // it listens
	conn, err := g.Dial(t.Context())
	check(t, err)
	_, err = wire.Handshake(conn, &wire.Hello{Min: wire.MinVersion, Max: wire.MaxVersion, Client: "by-hand", Epoch: 1, Kind: wire.KindControl})
	check(t, err)
	control, err := wire.HostMux(conn)
	check(t, err)
	defer control.Close()
	dial := func() (net.Conn, error) { return g.Dial(t.Context()) }

	line := direct(t, dial, control, "by-hand")
	frames := wire.NewReader(line)
	argv := []wire.Text{"true"}
	for name, exec := range map[string]*wire.Exec{
		"input":          {ID: "a", Argv: argv, Stdin: true},
		"a terminal":     {ID: "b", Argv: argv, TTY: &wire.Size{Rows: 1, Cols: 1}},
		"the background": {ID: "c", Argv: argv, Background: true},
		"no operands":    nil,
	} {
		check(t, wire.WriteRequest(line, &wire.Request{Op: wire.OpExec, Exec: exec}))
		if frame, err := frames.Frame(); err != nil || frame.Type != wire.FrameError {
			t.Errorf("%s: %v %v", name, frame.Type, err)
		}
	}
	check(t, wire.WriteRequest(line, &wire.Request{Op: wire.OpList, Target: &wire.Target{}}))
	if frame, err := frames.Frame(); err != nil || frame.Type != wire.FrameError {
		t.Errorf("another operation: %v %v", frame.Type, err)
	}
	check(t, wire.WriteRequest(line, &wire.Request{Op: wire.OpExec, Exec: &wire.Exec{ID: "d", Argv: argv}}))
	if frame, err := frames.Frame(); err != nil || frame.Type != wire.FrameExit && frame.Type != wire.FrameStarted { // or it is slow here
		t.Errorf("after the refusals: %v %v", frame.Type, err)
	}
	if _, err := line.Write([]byte("\xff\xff\xff\xffgarbage")); err != nil {
		t.Fatal(err)
	}
	if _, err := frames.Frame(); err == nil {
		t.Error("garbage was answered")
	}
	check(t, m.Ping(patience(t)))
	other := direct(t, dial, control, "by-hand")
	check(t, control.Close())
	if _, err := other.Read(make([]byte, 1)); err == nil {
		t.Error("a direct wire outlived the wire that it belongs to")
	}
}
