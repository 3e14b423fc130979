package machine_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/wire"
)

// countedReader counts the reads.
type countedReader struct {
	io.Reader
	reads atomic.Int64
}

func (r *countedReader) Read(b []byte) (int, error) {
	r.reads.Add(1)
	return r.Reader.Read(b)
}

// TestOlderGuestsGetTheCommandOverAStream: a guest without direct connections that
// need no parent runs the command all the same, once, and gets all of its input:
// nothing was read for a guest that had not answered.
func TestOlderGuestsGetTheCommandOverAStream(t *testing.T) {
	data := make([]byte, 2<<20)
	_, _ = rand.NewChaCha8([32]byte{3}).Read(data)
	refuse := func(code wire.Code) liar {
		return func(conn net.Conn) { _ = wire.WriteWelcome(conn, &wire.Welcome{Error: wire.Fail(code, "not here")}) }
	}
	afterRequest := func(play liar) liar {
		return func(conn net.Conn) {
			if _, err := wire.NewReader(conn).Request(); err == nil {
				play(conn)
			}
		}
	}
	for name, older := range map[string]liar{
		"hangs up at the hello":    func(net.Conn) {},
		"hangs up at the request":  afterRequest(func(net.Conn) {}),
		"another version":          afterRequest(refuse(wire.CodeVersion)),
		"another version, at once": refuse(wire.CodeVersion),
		"cannot do this":           afterRequest(refuse(wire.CodeUnsupported)),
		"without the feature":      afterRequest(refuse(wire.CodeNoFeature)),
	} {
		for size, env := range map[string][]string{"": nil, ", a large request": {"X=" + strings.Repeat("x", 300_000)}} {
			t.Run(name+size, func(t *testing.T) {
				t.Parallel()
				input := &countedReader{Reader: bytes.NewReader(data)}
				var early atomic.Int64
				honest := &unboundGuest{}
				m := lying(t, func(conn net.Conn) {
					hello, err := wire.ReadHello(conn)
					switch {
					case err != nil:
					case hello.Kind == wire.KindDirect && hello.Token == "":
						_ = conn.SetDeadline(time.Now().Add(wire.HelloTimeout))
						older(conn)
						early.Add(input.reads.Load())
					case wire.WriteWelcome(conn, &wire.Welcome{Version: wire.MaxVersion, Boot: "older"}) == nil:
						serveFrames(conn, honest.answer)
					}
				}, &machine.Options{Direct: true})
				var out bytes.Buffer
				result, err := m.Exec(patience(t), &machine.Command{Argv: []string{"x"}, Env: env, Stdin: input, Stdout: &out})
				if err != nil || result.ExitCode != 3 || !bytes.Equal(out.Bytes(), data) {
					t.Fatalf("%+v %v, %d bytes of %d", result, err, out.Len(), len(data))
				}
				if honest.other.Load() != 1 || early.Load() != 0 {
					t.Errorf("started %d times, input read %d times before that", honest.other.Load(), early.Load())
				}
			})
		}
	}
}

// TestUnboundReadsNoInputBeforeTheStart: input that was read for a guest that does
// not start the command would be lost to the next reader.
func TestUnboundReadsNoInputBeforeTheStart(t *testing.T) {
	input := &countedReader{Reader: strings.NewReader("input")}
	guest := &unboundGuest{play: func(conn net.Conn, frames *wire.Reader) {
		early := input.reads.Load()
		_, _ = conn.Write(hasStarted)
		frame, err := frames.Frame()
		if early != 0 || err != nil || string(frame.Payload) != "input" {
			t.Errorf("read %d times before the start, then %q %v", early, frame.Payload, err)
		}
		_ = wire.WriteJSON(conn, wire.FrameExit, wire.Exit{})
	}}
	m := lying(t, guest.serve, &machine.Options{Direct: true})
	if _, err := m.Exec(patience(t), &machine.Command{Argv: []string{"x"}, Stdin: input}); err != nil {
		t.Error(err)
	}
	guest = &unboundGuest{play: says(raw(wire.FrameError, 20, `{"code":"not_found"}`))}
	input = &countedReader{Reader: strings.NewReader("input")}
	m = lying(t, guest.serve, &machine.Options{Direct: true})
	if _, err := m.Exec(patience(t), &machine.Command{Argv: []string{"x"}, Stdin: input}); err == nil || input.reads.Load() != 0 {
		t.Errorf("%v, and the input was read %d times", err, input.reads.Load())
	}
}
