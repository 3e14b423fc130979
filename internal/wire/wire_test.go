package wire_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFramesComeBack(t *testing.T) {
	var buf bytes.Buffer
	payloads := [][]byte{nil, []byte("x"), bytes.Repeat([]byte("ab"), 2000), make([]byte, wire.MaxFrame)}
	for i, payload := range payloads {
		if err := wire.WriteFrame(&buf, wire.FrameType(i), payload); err != nil {
			t.Fatal(err)
		}
	}
	r := wire.NewReader(&buf)
	for i, payload := range payloads {
		frame, err := r.Frame()
		if err != nil || frame.Type != wire.FrameType(i) || !bytes.Equal(frame.Payload, payload) {
			t.Errorf("frame %d: type %d, %d bytes, %v", i, frame.Type, len(frame.Payload), err)
		}
	}
	if _, err := r.Frame(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
	if err := wire.WriteFrame(io.Discard, 1, make([]byte, wire.MaxFrame+1)); err == nil {
		t.Error("a frame over the limit was written")
	}
}

func TestFrameErrors(t *testing.T) {
	tests := []struct {
		name  string
		input string
		want  error
	}{
		{"nothing", "", io.EOF},
		{"half a header", "\x01\x00", io.ErrUnexpectedEOF},
		{"half a payload", "\x01\x00\x00\x00\x05abc", io.ErrUnexpectedEOF},
		{"no payload", "\x01\x00\x00\x00\x05", io.ErrUnexpectedEOF},
		{"over the limit", "\x01\x00\x01\x00\x01", wire.ErrProtocol},
		{"endless", "\x01\xff\xff\xff\xff", wire.ErrProtocol},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := wire.NewReader(strings.NewReader(tt.input)).Frame(); !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
		})
	}
}

// TestLengthsAreNotBelieved claims large sizes and sends nothing.
func TestLengthsAreNotBelieved(t *testing.T) {
	claim := binary.BigEndian.AppendUint32(nil, wire.MaxRequest)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 1000 {
		if _, err := wire.NewReader(bytes.NewReader(claim)).Request(); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / 1000; each > 32<<10 {
		t.Errorf("each empty claim of %d bytes cost %d", wire.MaxRequest, each)
	}
}

func TestRequestsComeBack(t *testing.T) {
	want := &wire.Request{Op: wire.OpExec, Exec: &wire.Exec{
		ID: "id", Argv: []wire.Text{"echo", "ü", "\xff\xfe", "a\x00b"}, Env: []wire.Text{"A=\x80"}, Dir: "/tmp", TTY: &wire.Size{Rows: 1, Cols: 2},
		Cap: &wire.Cap{Head: 1, Tail: 2}, TimeoutMs: math.MaxInt64,
	}}
	var buf bytes.Buffer
	if err := wire.WriteRequest(&buf, want); err != nil {
		t.Fatal(err)
	}
	got, err := wire.NewReader(&buf).Request()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	want.Exec.Shell = wire.Text(strings.Repeat("x", wire.MaxRequest))
	if e := wire.AsError(wire.WriteRequest(&buf, want)); e.Code != wire.CodeInvalid {
		t.Errorf("a request over the limit: %v", e)
	}
}

func TestTextKeepsEveryByte(t *testing.T) {
	var all []byte
	for i := range 256 {
		all = append(all, byte(i))
	}
	for _, s := range []string{"", "plain", "ünïcödé \u2028 <>&", string(all), "\xff", `{"b64":"QUFB"}`} {
		b, err := json.Marshal(wire.Text(s))
		if err != nil {
			t.Fatal(err)
		}
		var back wire.Text
		if err := json.Unmarshal(b, &back); err != nil || string(back) != s {
			t.Errorf("%q became %q by %s: %v", s, back, b, err)
		}
	}
	for _, bad := range []string{`5`, `["x"]`, `{"b64":5}`, `{"b64":"!"}`} {
		if err := json.Unmarshal([]byte(bad), new(wire.Text)); err == nil {
			t.Errorf("%s was taken for text", bad)
		}
	}
}

func TestPrintable(t *testing.T) {
	tests := map[string]string{
		"plain ü": "plain ü", "a\x1b[31mb": "a?[31mb", "a\nb\tc\x00": "a?b?c?",
		"bad \xff byte": "bad ? byte", "turn \u202e around": "turn ? around",
		strings.Repeat("x", 5000): strings.Repeat("x", wire.MaxMessage),
	}
	for in, want := range tests {
		if got := wire.Printable(in); got != want {
			t.Errorf("%.20q became %.20q", in, got)
		}
	}
}

// pair is two ends of a real socket, closed when the test ends.
func pair(t *testing.T) (ours, theirs net.Conn) {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if ours, err = wire.DialSocket(t.Context(), l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if theirs, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ours.Close(); theirs.Close() })
	return ours, theirs
}

func TestHandshake(t *testing.T) {
	good := wire.Hello{Min: 1, Max: 1, Client: "host", Epoch: 7, Kind: wire.KindBulk}
	change := func(f func(*wire.Hello)) *wire.Hello { h := good; f(&h); return &h }
	tests := []struct {
		name    string
		hello   *wire.Hello
		welcome wire.Welcome
		refused error // by the guest
		failed  bool  // for the host
	}{
		{"honest", &good, wire.Welcome{Version: 1, Boot: "b", Build: "x"}, nil, false},
		{"direct, without a parent", change(func(h *wire.Hello) { h.Kind = wire.KindDirect }), wire.Welcome{Version: 1, Boot: "b"}, nil, false},
		{"direct, without a client", change(func(h *wire.Hello) { h.Kind, h.Client = wire.KindDirect, "" }), wire.Welcome{}, wire.ErrProtocol, true},
		{"refusal", &good, wire.Welcome{Error: wire.Fail(wire.CodeStale, "old")}, nil, true},
		{"no versions", change(func(h *wire.Hello) { h.Min = 0 }), wire.Welcome{}, wire.ErrProtocol, true},
		{"versions the wrong way round", change(func(h *wire.Hello) { h.Min, h.Max = 3, 2 }), wire.Welcome{}, wire.ErrProtocol, true},
		{"no client", change(func(h *wire.Hello) { h.Client = "" }), wire.Welcome{}, wire.ErrProtocol, true},
		{"strange client", change(func(h *wire.Hello) { h.Client = "a/b" }), wire.Welcome{}, wire.ErrProtocol, true},
		{"long client", change(func(h *wire.Hello) { h.Client = strings.Repeat("x", 65) }), wire.Welcome{}, wire.ErrProtocol, true},
		{"strange token", change(func(h *wire.Hello) { h.Kind, h.Token = wire.KindDirect, "a/b" }), wire.Welcome{}, wire.ErrProtocol, true},
		{"strange kind", change(func(h *wire.Hello) { h.Kind = "once" }), wire.Welcome{}, wire.ErrProtocol, true},
		{"strange features", change(func(h *wire.Hello) { h.Features = wire.Features{"a/b"} }), wire.Welcome{}, wire.ErrProtocol, true},
		{"strange needs", change(func(h *wire.Hello) { h.Needs = wire.Features{""} }), wire.Welcome{}, wire.ErrProtocol, true},
		{"features", change(func(h *wire.Hello) { h.Features = wire.Features{"exec", "unknown"} }), wire.Welcome{Version: 1, Boot: "b", Features: wire.Features{"exec"}}, nil, false},
		{"strange features of the guest", &good, wire.Welcome{Version: 1, Boot: "b", Features: wire.Features{"a b"}}, nil, true},
		{"too many features of the guest", &good, wire.Welcome{Version: 1, Boot: "b", Features: slices.Repeat(wire.Features{"x"}, wire.MaxFeatures+1)}, nil, true},
		{"strange kind, again", change(func(h *wire.Hello) { h.Kind = "x" }), wire.Welcome{}, wire.ErrProtocol, true},
		{"version that was not offered", &good, wire.Welcome{Version: 2, Boot: "b"}, nil, true},
		{"no boot", &good, wire.Welcome{Version: 1}, nil, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ours, theirs := pair(t)
			guest := make(chan error, 1)
			go func() {
				hello, err := wire.ReadHello(theirs)
				if err == nil {
					if !reflect.DeepEqual(hello, tt.hello) {
						t.Errorf("received %+v", hello)
					}
					err = wire.WriteWelcome(theirs, &tt.welcome)
				} else {
					theirs.Close()
				}
				guest <- err
			}()
			welcome, err := wire.Handshake(ours, tt.hello)
			if (err != nil) != tt.failed {
				t.Errorf("%+v %v", welcome, err)
			}
			if err := <-guest; !errors.Is(err, tt.refused) {
				t.Errorf("guest: %v, want %v", err, tt.refused)
			}
		})
	}
}

func TestNegotiate(t *testing.T) {
	tests := map[[2]int]int{{1, 1}: 1, {1, 9}: wire.MaxVersion, {2, 9}: wire.MaxVersion, {wire.MaxVersion + 1, wire.MaxVersion + 9}: 0}
	for versions, want := range tests {
		if got := wire.Negotiate(&wire.Hello{Min: versions[0], Max: versions[1]}); got != want {
			t.Errorf("%v: %d, want %d", versions, got, want)
		}
	}
}

// sessions returns both ends of one wire.
func sessions(t *testing.T) (host, guest *wire.Mux) {
	t.Helper()
	ours, theirs := pair(t)
	host, err := wire.HostMux(ours)
	if err != nil {
		t.Fatal(err)
	}
	guest, err = wire.GuestMux(theirs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = host.Close(); _ = guest.Close() })
	return host, guest
}

func TestSessionCarriesStreams(t *testing.T) {
	host, guest := sessions(t)
	go func() {
		for {
			stream, err := guest.Accept()
			if err != nil {
				return
			}
			go func() {
				defer stream.Close()
				_, _ = io.CopyN(stream, stream, 4)
			}()
		}
	}()
	for range 2 * wire.MaxStreams { // more than there may be at once
		stream, err := host.Open()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Write([]byte("ping")); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(stream); err != nil || string(got) != "ping" {
			t.Fatalf("%q %v", got, err)
		}
		stream.Close()
	}
	if n := host.Streams(); n != 0 {
		t.Errorf("%d streams are left", n)
	}
}

func TestSessionLimitsStreams(t *testing.T) {
	host, guest := sessions(t)
	go func() {
		for {
			if _, err := guest.Accept(); err != nil {
				return
			}
		}
	}()
	for i := range wire.MaxStreams {
		if _, err := host.Open(); err != nil {
			t.Fatalf("stream %d: %v", i, err)
		}
	}
	_, err := host.Open()
	if e, ok := errors.AsType[*wire.Error](err); !ok || e.Code != wire.CodeTooMany {
		t.Errorf("one too many: %v", err)
	}
}

func TestGuestMayNotOpenStreams(t *testing.T) {
	host, guest := sessions(t)
	_, _ = guest.Open()
	select {
	case <-host.Done():
	case <-time.After(5 * time.Second):
		t.Fatal("the host goes on")
	}
	if err := host.Err(); !errors.Is(err, wire.ErrProtocol) {
		t.Errorf("%v", err)
	}
}

// TestHostileHosts plays what a guest must survive: the host is not trusted
// either.
func TestHostileHosts(t *testing.T) {
	frame := func(version, kind byte, flags uint16, stream, length uint32) []byte {
		b := binary.BigEndian.AppendUint16([]byte{version, kind}, flags)
		b = binary.BigEndian.AppendUint32(b, stream)
		return binary.BigEndian.AppendUint32(b, length)
	}
	tests := map[string][]byte{
		"wrong version":         frame(1, 0, 0, 1, 0),
		"wrong type":            frame(0, 9, 0, 1, 0),
		"wrong flags":           frame(0, 0, 0xff, 1, 0),
		"the guest's own ids":   frame(0, 1, 1, 2, 0),
		"frame over the window": frame(0, 0, 1, 1, wire.Window+1),
		"pings":                 bytes.Repeat(frame(0, 2, 1, 0, 0), wire.MaxPeerPings+1),
		"stray frames":          bytes.Repeat(frame(0, 1, 0, 77, 0), wire.MaxAnomalies+1),
	}
	for name, input := range tests {
		t.Run(name, func(t *testing.T) {
			ours, theirs := pair(t)
			guest, err := wire.GuestMux(theirs)
			if err != nil {
				t.Fatal(err)
			}
			defer guest.Close()
			go func() { _, _ = ours.Write(input) }()
			select {
			case <-guest.Done():
			case <-time.After(5 * time.Second):
				t.Fatal("the guest goes on")
			}
			if err := guest.Err(); !errors.Is(err, wire.ErrProtocol) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestDialSocketTakesLongPaths(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("d", 200))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	l, err := net.Listen("unix", "s")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := wire.DialSocket(t.Context(), filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if pid, err := wire.PeerPID(conn); err != nil || pid != os.Getpid() {
		t.Errorf("peer %d %v", pid, err)
	}
	if uid, err := wire.PeerUID(conn); err != nil || uid != os.Getuid() {
		t.Errorf("user %d %v", uid, err)
	}
	if _, err := wire.PeerPID(&net.TCPConn{}); err == nil {
		t.Error("a TCP peer has a process")
	}
}
