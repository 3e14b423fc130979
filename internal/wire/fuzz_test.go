package wire_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
)

func FuzzReadFrame(f *testing.F) {
	f.Add([]byte("\x11\x00\x00\x00\x05hello\x14\x00\x00\x00\x02{}"))
	f.Add([]byte("\x01\xff\xff\xff\xff"))
	f.Add([]byte("\x13\x00\x00\x00\x18{\"stream\":17,\"bytes\":-1}"))
	f.Fuzz(func(t *testing.T, input []byte) {
		r := wire.NewReader(bytes.NewReader(input))
		used := 0
		for {
			frame, err := r.Frame()
			if err != nil {
				return
			}
			used += wire.HeaderSize + len(frame.Payload)
			if len(frame.Payload) > wire.MaxFrame || used > len(input) {
				t.Fatalf("%d bytes of payload from %d of input", len(frame.Payload), len(input))
			}
			var buf bytes.Buffer
			if err := wire.WriteFrame(&buf, frame.Type, frame.Payload); err != nil || !bytes.Equal(buf.Bytes(), input[used-buf.Len():used]) {
				t.Fatalf("does not come back: %v", err)
			}
			for _, v := range []any{new(wire.Started), new(wire.Gap), new(wire.Exit), new(wire.Status), new(wire.Listing), new(wire.Error), new(wire.Info), new(wire.Written)} {
				_ = frame.Decode(v)
			}
		}
	})
}

func message(json string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(json))), json...)
}

func FuzzRequest(f *testing.F) {
	f.Add(message(`{"op":"exec","exec":{"id":"x","argv":["echo",{"b64":"/w=="}],"env":[],"tty":{"rows":1,"cols":2}}}`))
	f.Add(message(`{"op":"end","target":{"id":"x","graceMs":9223372036854775807}}`))
	f.Add(message(`{"op":"logs","attach":{"stdout":-1}}`))
	f.Add([]byte("\x00\x10\x00\x00{"))
	f.Fuzz(func(t *testing.T, input []byte) {
		req, err := wire.NewReader(bytes.NewReader(input)).Request()
		if err != nil {
			return
		}
		var buf bytes.Buffer
		if err := wire.WriteRequest(&buf, req); err != nil {
			return // it grew over the limit by escaping
		}
		if _, err := wire.NewReader(&buf).Request(); err != nil {
			t.Fatalf("does not come back: %v", err)
		}
	})
}

// byteConn is a connection from which given bytes come.
type byteConn struct {
	net.Conn
	io.Reader
}

func (c byteConn) Read(b []byte) (int, error)    { return c.Reader.Read(b) }
func (byteConn) Write(b []byte) (int, error)     { return len(b), nil }
func (byteConn) SetDeadline(time.Time) error     { return nil }
func (byteConn) SetReadDeadline(time.Time) error { return nil }
func (byteConn) Close() error                    { return nil }

// bounded reports whether features are as many and as long as they may be.
func bounded(features wire.Features) bool {
	return len(features) <= wire.MaxFeatures && !slices.ContainsFunc(features, func(f wire.Feature) bool {
		return len(f) > wire.MaxFeatureName || !wire.ValidID(string(f))
	})
}

// FuzzHello feeds bytes to both sides of the handshake.
func FuzzHello(f *testing.F) {
	f.Add(append([]byte("atoll\x00\r\n"), message(`{"min":1,"max":1,"client":"c","epoch":1,"kind":"control"}`)...))
	f.Add(append([]byte("atoll\x00\r\n"), message(`{"min":2,"max":2,"client":"c","epoch":0,"kind":"direct","features":["exec","x"],"needs":["first-request"]}`)...))
	f.Add(append([]byte("atoll\x00\r\n"), message(`{"version":1,"boot":"b","build":"x"}`)...))
	f.Add(append([]byte("atoll\x00\r\n"), message(`{"version":2,"boot":"b","features":["exec","","`+strings.Repeat("x", 40)+`"]}`)...))
	f.Add(append([]byte("atoll\x00\r\n"), message(`{"min":1,"max":2,"client":"c","kind":"bulk","features":[`+strings.Repeat(`"x",`, 70)+`"x"]}`)...))
	f.Add(append([]byte("atoll\x00\r\n"), message(`{"error":{"code":"stale","message":"m"}}`)...))
	f.Add([]byte("atoll\x00\r\n\xff\xff\xff\xff"))
	hello := &wire.Hello{Min: 1, Max: 2, Client: "c", Kind: wire.KindControl}
	f.Fuzz(func(t *testing.T, input []byte) {
		if got, err := wire.ReadHello(byteConn{Reader: bytes.NewReader(input)}); err == nil {
			if !wire.ValidID(got.Client) || got.Min < 1 || got.Max < got.Min || !bounded(got.Features) || !bounded(got.Needs) {
				t.Fatalf("%+v", got)
			}
			if answer := new(wire.Welcome); answer.Accept(got) == nil && len(wire.AllFeatures().Missing(answer.Features)) > 0 {
				t.Fatalf("%+v", answer)
			}
		}
		if got, err := wire.Handshake(byteConn{Reader: bytes.NewReader(input)}, hello); err == nil {
			if !wire.ValidID(got.Boot) || got.Version < 1 || got.Version > 2 || !bounded(got.Features) || len(got.Features) == 0 {
				t.Fatalf("%+v", got)
			}
		}
	})
}

// FuzzSession throws bytes at both sides of a session. They must end, and
// neither panic nor hang.
func FuzzSession(f *testing.F) {
	f.Add([]byte("\x00\x01\x00\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x02hi"))
	f.Add([]byte("\x00\x02\x00\x01\x00\x00\x00\x00\x00\x00\x00\x07\x00\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, input []byte) {
		for _, start := range []func(net.Conn) (*wire.Mux, error){wire.HostMux, wire.GuestMux} {
			session, err := start(byteConn{Reader: bytes.NewReader(input)})
			if err != nil {
				t.Fatal(err)
			}
			select {
			case <-session.Done():
			case <-time.After(10 * time.Second):
				t.Fatal("it does not end")
			}
			_ = session.Close()
		}
	})
}
