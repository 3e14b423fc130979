package machine_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/wire"
)

// liar is a guest that plays a part. It gets every connection that the machine
// under test makes, and must end when that is closed.
type liar func(conn net.Conn)

// lying returns a machine whose guest is a liar.
func lying(t *testing.T, play liar, options *machine.Options) *machine.Machine {
	t.Helper()
	var playing sync.WaitGroup
	m := machine.New(func(context.Context) (net.Conn, error) {
		ours, theirs, err := socketPair()
		if err != nil {
			return nil, err
		}
		playing.Go(func() {
			defer theirs.Close()
			play(theirs)
		})
		return ours, nil
	}, options)
	t.Cleanup(func() {
		_ = m.Close()
		playing.Wait()
	})
	return m
}

// socketPair is two ends of a real socket.
func socketPair() (ours, theirs net.Conn, err error) {
	l, err := net.Listen("unix", "")
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	if ours, err = net.Dial("unix", l.Addr().String()); err != nil {
		return nil, nil, err
	}
	theirs, err = l.Accept()
	return ours, theirs, err
}

// greeted performs an honest handshake first.
func greeted(play liar) liar {
	return func(conn net.Conn) {
		if _, err := wire.ReadHello(conn); err != nil {
			return
		}
		if wire.WriteWelcome(conn, &wire.Welcome{Version: 1, Boot: "liar"}) == nil {
			play(conn)
		}
	}
}

// answering plays an honest session, with lies in the streams.
func answering(play func(stream net.Conn, req *wire.Request)) liar {
	return greeted(func(conn net.Conn) { serveStreams(conn, play) })
}

// serveStreams plays the guest's side of a session.
func serveStreams(conn net.Conn, play func(net.Conn, *wire.Request)) {
	serveFrames(conn, func(stream net.Conn, _ *wire.Reader, req *wire.Request) { play(stream, req) })
}

// serveFrames is serveStreams for guests that read what follows a request.
func serveFrames(conn net.Conn, play func(net.Conn, *wire.Reader, *wire.Request)) {
	session, err := wire.GuestMux(conn)
	if err != nil {
		return
	}
	defer session.Close()
	for {
		stream, err := session.Accept()
		if err != nil {
			return
		}
		go func() {
			defer stream.Close()
			frames := wire.NewReader(stream)
			if req, err := frames.Request(); err == nil {
				play(stream, frames, req)
			}
		}()
	}
}

// raw is a frame with any claimed length.
func raw(kind wire.FrameType, length uint32, payload string) []byte {
	b := binary.BigEndian.AppendUint32([]byte{byte(kind)}, length)
	return append(b, payload...)
}

// mux is a frame of the multiplexer.
func mux(kind byte, flags uint16, stream, length uint32) []byte {
	b := []byte{0, kind}
	b = binary.BigEndian.AppendUint16(b, flags)
	b = binary.BigEndian.AppendUint32(b, stream)
	return binary.BigEndian.AppendUint32(b, length)
}

// flood writes b until the connection breaks.
func flood(conn net.Conn, b []byte) {
	b = bytes.Repeat(b, 1+4096/len(b))
	for {
		if _, err := conn.Write(b); err != nil {
			return
		}
	}
}

func TestLyingGuests(t *testing.T) {
	tests := map[string]struct {
		play liar
		want error
		says string // part of the message
	}{
		"closes at once":              {func(net.Conn) {}, machine.ErrBroken, "too often"},
		"speaks another language":     {func(c net.Conn) { flood(c, []byte("HTTP/1.1 400 Bad Request\r\n\r\n")) }, machine.ErrBroken, "not an Atoll"},
		"endless hello":               {func(c net.Conn) { flood(c, []byte("atoll\x00\r\n\xff\xff\xff\xff{")) }, machine.ErrBroken, "over the limit"},
		"hello that is no JSON":       {func(c net.Conn) { flood(c, []byte("atoll\x00\r\n\x00\x00\x00\x02[}")) }, machine.ErrBroken, ""},
		"version from the future":     {hello(`{"version":99,"boot":"b"}`), machine.ErrBroken, "version 99"},
		"malformed boot":              {hello(`{"version":1,"boot":"../../etc"}`), machine.ErrBroken, ""},
		"refuses":                     {hello(`{"error":{"code":"too_many","message":"go \u001b[31maway"}}`), machine.ErrBusy, "go ?[31maway"},
		"garbage after the hello":     {greeted(func(c net.Conn) { flood(c, []byte("garbage")) }), machine.ErrBroken, "malformed"},
		"opens a stream":              {greeted(func(c net.Conn) { _, _ = c.Write(mux(1, 1, 2, 0)); _, _ = io.Copy(io.Discard, c) }), machine.ErrBroken, "opened a stream"},
		"opens thousands of streams":  {greeted(func(c net.Conn) { flood(c, mux(0, 1, 2, 0)) }), machine.ErrBroken, "opened a stream"},
		"floods with pings":           {greeted(func(c net.Conn) { flood(c, mux(2, 1, 0, 7)) }), machine.ErrBroken, "pings"},
		"answers nobody's questions":  {greeted(func(c net.Conn) { flood(c, append(mux(0, 0, 9999, 5), "hello"...)) }), machine.ErrBroken, "stray"},
		"acknowledges without end":    {greeted(func(c net.Conn) { flood(c, mux(1, 2, 1, 0)) }), machine.ErrBroken, "stray"},
		"frame larger than any":       {greeted(func(c net.Conn) { flood(c, mux(0, 0, 1, 0xffffffff)) }), machine.ErrBroken, "window"},
		"sends beyond the window":     {greeted(func(c net.Conn) { flood(c, append(mux(0, 0, 1, 65536), make([]byte, 65536)...)) }), machine.ErrBroken, ""},
		"answers with nonsense":       {answer(raw(wire.FrameResult, 3, "{[}")), machine.ErrBroken, ""},
		"answers with another frame":  {answer(raw(wire.FrameExit, 2, "{}")), machine.ErrBroken, "answers"},
		"answers with an endless one": {answer(raw(wire.FrameResult, 0xffffffff, "{")), machine.ErrBroken, "over the limit"},
		"breaks off its answer":       {answer(raw(wire.FrameResult, 1000, "{")), machine.ErrLost, ""},
		"closes the stream":           {answer(nil), machine.ErrLost, ""},
		"reports an unknown error":    {answer(raw(wire.FrameError, 30, `{"code":"zzz","message":"ouch"}`[:30])), machine.ErrBroken, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := lying(t, tt.play, &machine.Options{DialTimeout: 3 * time.Second})
			err := m.Ping(patience(t))
			if errors.Is(tt.want, machine.ErrBroken) { // a flood may be noticed a moment after the answer
				eventually(t, "it is found out", func() bool { err = m.Ping(patience(t)); return errors.Is(err, machine.ErrBroken) })
			}
			if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v; want %v", err, tt.want)
			}
			t.Log(err)
			if errors.Is(tt.want, machine.ErrBroken) {
				if _, err := m.Exec(patience(t), &machine.Command{Argv: []string{"true"}}); !errors.Is(err, machine.ErrBroken) {
					t.Errorf("exec: %v", err)
				}
			}
		})
	}
}

func hello(welcome string) liar {
	return func(conn net.Conn) {
		if _, err := wire.ReadHello(conn); err != nil {
			return
		}
		b := binary.BigEndian.AppendUint32([]byte("atoll\x00\r\n"), uint32(len(welcome)))
		_, _ = conn.Write(append(b, welcome...))
		_, _ = io.Copy(io.Discard, conn)
	}
}

// answer plays a guest that answers everything alike.
func answer(b []byte) liar {
	return answering(func(stream net.Conn, _ *wire.Request) { _, _ = stream.Write(b) })
}

func TestLyingCommands(t *testing.T) {
	started := raw(wire.FrameStarted, 16, `{"pid":7,"x": 1}`)
	exit := raw(wire.FrameExit, 10, `{"code":0}`)
	tests := map[string]struct {
		frames  []byte
		forever []byte
		want    error
	}{
		"exit that is no JSON":  {frames: raw(wire.FrameExit, 4, "nope"), want: machine.ErrBroken},
		"unknown frame":         {frames: raw(99, 0, ""), want: machine.ErrBroken},
		"input instead":         {frames: raw(wire.FrameStdin, 1, "x"), want: machine.ErrBroken},
		"gap in nothing":        {frames: raw(wire.FrameGap, 23, `{"stream":99,"bytes":10}`[:23]), want: machine.ErrBroken},
		"negative gap":          {frames: raw(wire.FrameGap, 24, `{"stream":17,"bytes":-1}`), want: machine.ErrBroken},
		"gap beyond all":        {frames: bytes.Repeat(raw(wire.FrameGap, 42, `{"stream":17,"bytes":6000000000000000000} `), 2), want: machine.ErrBroken},
		"output over the limit": {frames: started, forever: raw(wire.FrameStdout, 4, "spam"), want: machine.ErrBroken},
		"output and no exit":    {frames: append(started, raw(wire.FrameStdout, 2, "hi")...), want: machine.ErrLost},
		"half a frame":          {frames: append(started, raw(wire.FrameStdout, 100, "hi")...), want: machine.ErrLost},
		"exit twice":            {frames: append(append(started, exit...), exit...), want: nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := lying(t, answering(func(stream net.Conn, req *wire.Request) {
				_, _ = stream.Write(tt.frames)
				if tt.forever != nil {
					flood(stream, tt.forever)
				}
			}), &machine.Options{MaxBreaks: 2})
			var out bytes.Buffer
			_, err := m.Exec(patience(t), &machine.Command{Argv: []string{"true"}, Stdout: &out, OutputLimit: 1000})
			worse := errors.Is(tt.want, machine.ErrLost) && errors.Is(err, machine.ErrBroken)
			if !errors.Is(err, tt.want) && !worse {
				t.Errorf("%v; want %v", err, tt.want)
			}
			if out.Len() > 1000 {
				t.Errorf("%d bytes came through", out.Len())
			}
			t.Log(err)
		})
	}
}

// TestFloodingGuestIsBounded lets a guest send as much as it can while the host
// does not read, on every stream that there can be.
func TestFloodingGuestIsBounded(t *testing.T) {
	block := make(chan struct{})
	m := lying(t, answering(func(stream net.Conn, _ *wire.Request) {
		flood(stream, raw(wire.FrameStdout, 60000, strings.Repeat("x", 60000)))
	}), nil)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for range 128 {
		running.Go(func() {
			_, _ = m.Exec(ctx, &machine.Command{Argv: []string{"x"}, Grace: time.Millisecond, Stdout: writerFunc(func(b []byte) (int, error) { <-block; return len(b), nil })})
		})
	}
	time.Sleep(2 * time.Second)
	runtime.GC()
	runtime.ReadMemStats(&after)
	t.Logf("128 flooding commands hold %d MiB on the host", (int64(after.HeapAlloc)-int64(before.HeapAlloc))>>20)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 160<<20 {
		t.Errorf("memory grew by %d bytes", grown)
	}
	cancel()
	close(block)
	running.Wait()
}

// TestStallingGuest never answers anything.
func TestStallingGuest(t *testing.T) {
	t.Parallel()
	m := lying(t, answering(func(stream net.Conn, _ *wire.Request) { _, _ = io.Copy(io.Discard, stream) }), nil)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	killed := false
	begin := time.Now()
	if err := m.Ping(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ping: %v", err)
	}
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("took %v", took)
	}
	m = lying(t, answering(func(stream net.Conn, _ *wire.Request) { _, _ = io.Copy(io.Discard, stream) }),
		&machine.Options{Kill: func(context.Context) error { killed = true; return nil }})
	_, err := m.Exec(t.Context(), &machine.Command{Argv: []string{"x"}, Timeout: 100 * time.Millisecond, Grace: time.Millisecond})
	if !errors.Is(err, machine.ErrLost) || !strings.Contains(err.Error(), "did not end the command") {
		t.Errorf("exec: %v", err)
	}
	if !killed {
		t.Error("the sandbox was not killed from outside")
	}
}

func TestEndlessListOfProcesses(t *testing.T) {
	m := lying(t, answering(func(stream net.Conn, req *wire.Request) {
		page := wire.Listing{More: true, Processes: []wire.Status{{ID: req.Target.ID + "x"}}}
		_ = wire.WriteJSON(stream, wire.FrameResult, page)
	}), nil)
	if _, err := m.Processes(patience(t)); !errors.Is(err, machine.ErrBroken) {
		t.Errorf("%v", err)
	}
}

func TestGuestTextIsPrintable(t *testing.T) {
	m := lying(t, answering(func(stream net.Conn, req *wire.Request) {
		if req.Op == wire.OpExec {
			exit := wire.Exit{Code: -5, Signal: "SIG\x1b[2J", UserUs: -1, MaxRSS: -1, DurationUs: 1 << 62, Stdout: -7}
			_ = wire.WriteJSON(stream, wire.FrameExit, exit)
			return
		}
		status, _ := json.Marshal(wire.Status{ID: "a\x1b]0;b", Command: "\x1b[31mred\u202e", Stdout: -1})
		_ = wire.WriteFrame(stream, wire.FrameResult, status)
	}), nil)
	result, err := m.Exec(patience(t), &machine.Command{Argv: []string{"x"}})
	if err != nil || result.ExitCode != 0 || result.Signal != "unknown" || result.User < 0 || result.MaxRSS < 0 || result.Duration < 0 || result.Stdout.Total != 0 {
		t.Errorf("%+v %v", result, err)
	}
	p, err := m.Process(patience(t), "x")
	if err != nil || strings.ContainsAny(p.ID+p.Command, "\x1b\u202e") || p.Stdout != 0 {
		t.Errorf("%+v %v", p, err)
	}
}
