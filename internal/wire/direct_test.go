package wire_test

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/wire"
)

// writes counts the calls of a connection's Write.
type writes struct {
	io.Writer
	n int
}

func (w *writes) Write(b []byte) (int, error) {
	w.n++
	return w.Writer.Write(b)
}

// TestOpenDirect: hello and first request arrive as they were sent, in one message,
// and what follows them is left in the connection.
func TestOpenDirect(t *testing.T) {
	for name, want := range map[string]*wire.Exec{
		"small": {ID: "x", Argv: wire.Texts([]string{"echo", "a\xff\x00\n\"\\é\u2028<>&"}), Env: wire.Texts([]string{"A=1", "B=\xfe"}), Dir: "/tmp"},
		"all of it": {
			ID: "y", Shell: "exit 3", Env: wire.Texts([]string{"A="}), Stdin: true, TimeoutMs: 1, GraceMs: 2, EndTree: true,
			Cap: &wire.Cap{Head: 10, Tail: 20}, Grant: "g", While: "w",
		},
		"large": {ID: "z", Argv: wire.Texts([]string{"true"}), Env: wire.Texts([]string{"X=" + strings.Repeat("x", 900_000)})},
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := pair(t)
			sent := make(chan error, 1)
			counted := &writes{Writer: ours}
			go func() {
				err := wire.OpenDirect(counted, wire.NewHello(wire.KindDirect, "client", 7), &wire.Request{Op: wire.OpExec, Exec: want})
				sent <- errors.Join(err, wire.WriteFrame(ours, wire.FrameStdin, []byte("input")))
			}()
			hello, err := wire.ReadHello(theirs)
			wanted := wire.NewHello(wire.KindDirect, "client", 7)
			wanted.Needs = wire.Features{wire.FeatureExec, wire.FeatureFirstRequest}
			if want.Grant != "" {
				wanted.Needs = wire.Features{wire.FeatureExec, wire.FeatureGrants, wire.FeatureExecWhile, wire.FeatureFirstRequest}
			}
			if err != nil || !reflect.DeepEqual(hello, wanted) {
				t.Fatalf("%+v %v", hello, err)
			}
			frames := wire.NewReader(theirs)
			got, err := frames.Request()
			if err != nil || got.Op != wire.OpExec || !reflect.DeepEqual(got.Exec, want) {
				t.Fatalf("%+v %v", got, err)
			}
			if frame, err := frames.Frame(); err != nil || string(frame.Payload) != "input" {
				t.Errorf("%q %v", frame.Payload, err)
			}
			if err := <-sent; err != nil || counted.n != 1 {
				t.Errorf("%d messages, %v", counted.n, err)
			}
		})
	}
}

// TestOpenDirectRefuses: of what a guest would refuse nothing is sent.
func TestOpenDirectRefuses(t *testing.T) {
	hello := wire.NewHello(wire.KindDirect, "client", 1)
	var sent bytes.Buffer
	err := wire.OpenDirect(&sent, hello, &wire.Request{Op: wire.OpExec, Exec: &wire.Exec{ID: "x", Argv: wire.Texts([]string{strings.Repeat("x", wire.MaxRequest)})}})
	if e, ok := errors.AsType[*wire.Error](err); !ok || e.Code != wire.CodeInvalid || sent.Len() > 0 {
		t.Errorf("%v, after %d bytes", err, sent.Len())
	}
	broken := errors.New("broken")
	if err := wire.OpenDirect(failing{broken}, hello, &wire.Request{Op: wire.OpExec, Exec: &wire.Exec{ID: "x", Shell: "true"}}); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

type failing struct{ error }

func (f failing) Write([]byte) (int, error) { return 0, f.error }
