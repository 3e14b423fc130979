package machine_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/wire"
)

// unboundGuest is a guest whose direct connections without a parent are served by
// play, after the first request. Others are honest: a command there copies its
// input to its output. starts counts the commands.
type unboundGuest struct {
	starts atomic.Int64
	other  atomic.Int64 // of starts, those over streams
	play   func(conn net.Conn, frames *wire.Reader)
	stream func(stream net.Conn, req *wire.Request) // nil: honest
}

func (g *unboundGuest) serve(conn net.Conn) {
	hello, err := wire.ReadHello(conn)
	switch {
	case err != nil:
	case wire.WriteWelcome(conn, &wire.Welcome{Version: wire.MaxVersion, Boot: "liar"}) != nil:
	case hello.Kind != wire.KindDirect:
		serveFrames(conn, g.answer)
	default:
		frames := wire.NewReader(conn)
		if _, err := frames.Request(); err == nil {
			g.starts.Add(1)
			g.play(conn, frames)
		}
	}
}

func (g *unboundGuest) answer(stream net.Conn, frames *wire.Reader, req *wire.Request) {
	switch {
	case g.stream != nil:
		g.stream(stream, req)
	case req.Op == wire.OpExec:
		g.starts.Add(1)
		g.other.Add(1)
		giveBack(stream, frames, req)
	default:
		_ = wire.WriteJSON(stream, wire.FrameResult, struct{}{})
	}
}

// giveBack is a command that copies its input to its output.
func giveBack(stream net.Conn, frames *wire.Reader, req *wire.Request) {
	for req.Exec.Stdin {
		frame, err := frames.Frame()
		if err != nil || frame.Type == wire.FrameStdinEOF {
			break
		}
		_ = wire.WriteFrame(stream, wire.FrameStdout, frame.Payload)
	}
	_ = wire.WriteJSON(stream, wire.FrameExit, wire.Exit{Code: 3})
}

// says sends fixed bytes and closes the connection.
func says(parts ...[]byte) func(net.Conn, *wire.Reader) {
	return func(conn net.Conn, _ *wire.Reader) { _, _ = conn.Write(slices.Concat(parts...)) }
}

var hasStarted = raw(wire.FrameStarted, 9, `{"pid":7}`)

func untilClosed(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

// TestLyingUnboundConnections: a guest that breaks the protocol is broken, one that
// breaks the connection is lost, and the command is never sent again.
func TestLyingUnboundConnections(t *testing.T) {
	tests := map[string]struct {
		play func(net.Conn, *wire.Reader)
		want error
	}{
		"endless frame":             {says(raw(wire.FrameStarted, 1<<31, "{")), machine.ErrBroken},
		"endless output":            {says(hasStarted, raw(wire.FrameStdout, wire.MaxFrame+1, "x")), machine.ErrBroken},
		"unknown frame":             {says(raw(99, 0, "")), machine.ErrBroken},
		"unknown frame later":       {says(hasStarted, raw(99, 0, "")), machine.ErrBroken},
		"input instead":             {says(hasStarted, raw(wire.FrameStdin, 1, "x")), machine.ErrBroken},
		"result instead":            {says(hasStarted, raw(wire.FrameResult, 2, "{}")), machine.ErrBroken},
		"started twice":             {says(hasStarted, hasStarted), machine.ErrBroken},
		"output before the start":   {says(raw(wire.FrameStdout, 2, "hi")), machine.ErrBroken},
		"exit before the start":     {says(raw(wire.FrameExit, 2, "{}")), machine.ErrBroken},
		"malformed exit":            {says(hasStarted, raw(wire.FrameExit, 2, "{{")), machine.ErrBroken},
		"exit of another shape":     {says(hasStarted, raw(wire.FrameExit, 12, `{"code":"x"}`)), machine.ErrBroken},
		"malformed error":           {says(raw(wire.FrameError, 2, "{{")), machine.ErrBroken},
		"malformed error later":     {says(hasStarted, raw(wire.FrameError, 2, "{{")), machine.ErrBroken},
		"gap of no stream":          {says(hasStarted, raw(wire.FrameGap, 23, `{"stream":5,"bytes":10}`)), machine.ErrBroken},
		"impossible gap":            {says(hasStarted, raw(wire.FrameGap, 24, `{"stream":17,"bytes":-1}`)), machine.ErrBroken},
		"over the limit":            {says(hasStarted, raw(wire.FrameStdout, 20, "01234567890123456789")), machine.ErrBroken},
		"hangs up":                  {says(hasStarted), machine.ErrLost},
		"hangs up in its output":    {says(hasStarted, raw(wire.FrameStdout, 2, "hi")), machine.ErrLost},
		"hangs up in a frame":       {says(hasStarted, raw(wire.FrameStdout, 100, "hi")), machine.ErrLost},
		"refuses":                   {says(raw(wire.FrameError, 20, `{"code":"not_found"}`)), machine.ErrNotFound},
		"refuses late":              {says(hasStarted, raw(wire.FrameError, 20, `{"code":"not_found"}`)), machine.ErrNotFound},
		"goes on after the exit":    {says(hasStarted, raw(wire.FrameExit, 10, `{"code":3}`), hasStarted), nil},
		"claims more than it wrote": {says(hasStarted, raw(wire.FrameExit, 26, `{"code":3,"stdout":999999}`)), nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			guest := &unboundGuest{play: tt.play}
			m := lying(t, guest.serve, &machine.Options{Direct: true})
			var out bytes.Buffer
			result, err := m.Exec(patience(t), &machine.Command{Argv: []string{"x"}, Stdin: strings.NewReader("input"), Stdout: &out, OutputLimit: 10})
			if !errors.Is(err, tt.want) || (result != nil) != (tt.want == nil) || out.Len() > 10 {
				t.Errorf("%+v %v, %d bytes; want %v", result, err, out.Len(), tt.want)
			}
			if n := guest.starts.Load(); n != 1 {
				t.Errorf("it was asked for %d commands", n)
			}
			if broken := errors.Is(m.Ping(patience(t)), machine.ErrBroken); broken != errors.Is(tt.want, machine.ErrBroken) {
				t.Errorf("declared broken: %v", broken)
			}
		})
	}
}

// TestUnboundTextIsPrintable: a result is as harmless as one over a stream.
func TestUnboundTextIsPrintable(t *testing.T) {
	guest := &unboundGuest{play: func(conn net.Conn, _ *wire.Reader) {
		_, _ = conn.Write(hasStarted)
		_ = wire.WriteJSON(conn, wire.FrameExit, wire.Exit{Code: -5, Signal: "SIG\x1b[2J", UserUs: -1, MaxRSS: -1, DurationUs: 1 << 62, Stdout: -7})
	}}
	result, err := lying(t, guest.serve, &machine.Options{Direct: true}).Exec(patience(t), &machine.Command{Argv: []string{"x"}})
	if err != nil || result.ExitCode != 0 || result.Signal != "unknown" || result.User < 0 || result.MaxRSS < 0 || result.Duration < 0 || result.Stdout.Total != 0 {
		t.Errorf("%+v %v", result, err)
	}
	guest = &unboundGuest{play: func(conn net.Conn, _ *wire.Reader) {
		_ = wire.WriteJSON(conn, wire.FrameError, wire.Error{Code: "zzz", Message: "go \x1b[31maway"})
	}}
	_, err = lying(t, guest.serve, &machine.Options{Direct: true}).Exec(patience(t), &machine.Command{Argv: []string{"x"}})
	if err == nil || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("%v", err)
	}
}

// silentUnbound is a guest that sends something and then nothing more, and what
// Exec returns then.
type silentUnbound struct {
	says    []byte
	stream  func(net.Conn, *wire.Request) // on other wires; nil: honest
	leaves  bool                          // the caller cancels
	timeout time.Duration
	wants   []error
	kills   bool
}

func (s *silentUnbound) play(t *testing.T, name string) {
	t.Helper()
	killed := false
	guest := &unboundGuest{stream: s.stream}
	m := lying(t, guest.serve, &machine.Options{Direct: true, Kill: func(context.Context) error { killed = true; return nil }})
	ctx, cancel := context.WithCancel(patience(t))
	defer cancel()
	guest.play = func(conn net.Conn, _ *wire.Reader) {
		_, _ = conn.Write(s.says)
		if s.leaves {
			cancel()
		}
		untilClosed(conn)
	}
	result, err := m.Exec(ctx, &machine.Command{Argv: []string{"x"}, Timeout: s.timeout, Grace: time.Millisecond})
	for _, want := range s.wants {
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	if result != nil || killed != s.kills || guest.starts.Load() != 1 {
		t.Errorf("%s: %+v, killed: %v, asked for %d commands", name, result, killed, guest.starts.Load())
	}
	if overdue := strings.Contains(err.Error(), "did not end the command"); overdue != (s.timeout > 0) {
		t.Errorf("%s: %v", name, err)
	}
}

// TestSilentUnboundConnections: a guest that sends nothing loses the connection in
// the end, and one that does not end the command is killed from outside.
func TestSilentUnboundConnections(t *testing.T) {
	t.Parallel()
	hangUp := func(net.Conn, *wire.Request) {}
	cannotEnd := func(stream net.Conn, _ *wire.Request) {
		_ = wire.WriteJSON(stream, wire.FrameError, wire.Fail(wire.CodeStuck, "it does not end"))
	}
	cancelled, lost := []error{context.Canceled}, []error{machine.ErrLost}
	both := []error{context.Canceled, machine.ErrLost}
	var playing sync.WaitGroup
	for name, s := range map[string]*silentUnbound{
		"owes the exit":           {says: hasStarted, leaves: true, wants: both},
		"owes the start":          {leaves: true, wants: cancelled},
		"stuck":                   {says: hasStarted, stream: cannotEnd, leaves: true, wants: both, kills: true},
		"stuck in a frame":        {says: slices.Concat(hasStarted, raw(wire.FrameStdout, 9, "x")), stream: cannotEnd, leaves: true, wants: both, kills: true},
		"overdue":                 {says: hasStarted, stream: cannotEnd, timeout: time.Millisecond, wants: lost, kills: true},
		"gone, and nobody leaves": {says: hasStarted, stream: hangUp, wants: lost},
	} {
		playing.Go(func() { s.play(t, name) }) // at the same time: each takes seconds
	}
	playing.Go(func() { silentForLong(t) })
	playing.Wait()
}

// silentForLong has a command write nothing until its guest is pinged. That does
// not end it.
func silentForLong(t *testing.T) {
	t.Helper()
	asked := make(chan struct{}, 100)
	guest := &unboundGuest{
		play: func(conn net.Conn, _ *wire.Reader) {
			_, _ = conn.Write(hasStarted)
			<-asked
			_ = wire.WriteJSON(conn, wire.FrameExit, wire.Exit{Code: 9})
		},
		stream: func(stream net.Conn, req *wire.Request) {
			_ = wire.WriteJSON(stream, wire.FrameResult, struct{}{})
			if req.Op == wire.OpPing {
				asked <- struct{}{}
			}
		},
	}
	m := lying(t, guest.serve, &machine.Options{Direct: true})
	if result, err := m.Exec(patience(t), &machine.Command{Argv: []string{"x"}}); err != nil || result.ExitCode != 9 || guest.starts.Load() != 1 {
		t.Errorf("silent for long: %+v %v, asked for %d commands", result, err, guest.starts.Load())
	}
}

// TestDeadGuestOnUnboundConnections: nothing comes over any wire, and there is no Kill.
func TestDeadGuestOnUnboundConnections(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(patience(t))
	defer cancel()
	guest := &unboundGuest{
		play:   func(conn net.Conn, _ *wire.Reader) { _, _ = conn.Write(hasStarted); cancel(); untilClosed(conn) },
		stream: func(stream net.Conn, _ *wire.Request) { untilClosed(stream) },
	}
	m := lying(t, guest.serve, &machine.Options{Direct: true})
	if result, err := m.Exec(ctx, &machine.Command{Argv: []string{"x"}, Grace: time.Millisecond}); !errors.Is(err, context.Canceled) || !errors.Is(err, machine.ErrLost) || result != nil {
		t.Errorf("%+v %v", result, err)
	}
}

// TestUnboundCancelledBeforeItIsThere: a guest that has not started the command
// when it is to end is asked again.
func TestUnboundCancelledBeforeItIsThere(t *testing.T) {
	ctx, cancel := context.WithCancel(patience(t))
	defer cancel()
	asked := make(chan struct{}, 100)
	guest := unboundGuest{play: func(conn net.Conn, _ *wire.Reader) {
		cancel()
		<-asked
		_, _ = conn.Write(hasStarted)
		for range 2 {
			<-asked
		}
		_ = wire.WriteJSON(conn, wire.FrameExit, wire.Exit{Code: 143})
	}}
	var ends atomic.Int64
	guest.stream = func(stream net.Conn, req *wire.Request) {
		if req.Op == wire.OpEnd && ends.Add(1) < 3 {
			_ = wire.WriteJSON(stream, wire.FrameError, wire.Fail(wire.CodeNoProcess, "not yet"))
		} else {
			_ = wire.WriteJSON(stream, wire.FrameResult, struct{}{})
		}
		asked <- struct{}{}
	}
	m := lying(t, guest.serve, &machine.Options{Direct: true})
	result, err := m.Exec(ctx, &machine.Command{Argv: []string{"x"}})
	if !errors.Is(err, context.Canceled) || result == nil || result.ExitCode != 143 {
		t.Errorf("%+v %v", result, err)
	}
}

// TestClosedBeforeItHasStarted: a command whose machine is closed before the guest
// has answered is not sent again.
func TestClosedBeforeItHasStarted(t *testing.T) {
	t.Parallel()
	heard := make(chan struct{})
	guest := &unboundGuest{play: func(conn net.Conn, _ *wire.Reader) { close(heard); untilClosed(conn) }}
	m := lying(t, guest.serve, &machine.Options{Direct: true})
	over := make(chan error, 1)
	go func() {
		_, err := m.Exec(patience(t), &machine.Command{Argv: []string{"x"}})
		over <- err
	}()
	<-heard
	_ = m.Close()
	if err := <-over; !errors.Is(err, machine.ErrClosed) || guest.starts.Load() != 1 {
		t.Errorf("%v, asked for %d commands", err, guest.starts.Load())
	}
}
