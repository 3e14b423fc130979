package protocol_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"github.com/atoll-run/atoll/internal/gateway/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs a server whose connections are handed to talk, and returns its address.
func serve(t *testing.T, o protocol.AcceptOptions, talk func(context.Context, *protocol.Conn)) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := protocol.Accept(w, r, o)
		if err != nil {
			return
		}
		defer c.Drop()
		talk(context.WithoutCancel(r.Context()), c)
	}))
	t.Cleanup(srv.Close)
	return strings.Replace(srv.URL, "http", "ws", 1)
}

// echo answers every message with itself until the connection ends.
func echo(ctx context.Context, c *protocol.Conn) {
	for {
		data, err := c.Read(ctx)
		if err != nil || c.Write(ctx, data) != nil {
			return
		}
	}
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func dial(t *testing.T, url string, o protocol.DialOptions) *protocol.Conn {
	t.Helper()
	c, err := protocol.Dial(within(t), url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Drop)
	return c
}

func TestConnCarriesText(t *testing.T) {
	ctx := within(t)
	c := dial(t, serve(t, protocol.AcceptOptions{}, echo), protocol.DialOptions{})
	for _, text := range []string{`{}`, `{"a":"ü"}`, strings.Repeat("x", protocol.MaxEarlyPayload)} {
		if err := c.Write(ctx, []byte(text)); err != nil {
			t.Fatal(err)
		}
		got, err := c.Read(ctx)
		if err != nil || string(got) != text {
			t.Fatalf("got %d bytes, %v; want %d", len(got), err, len(text))
		}
	}
	if err := c.Close(protocol.CloseNormal, "done"); err != nil {
		t.Errorf("close: %v", err)
	}
}

func TestConnKeepsItsLimit(t *testing.T) {
	ctx := within(t)
	c := dial(t, serve(t, protocol.AcceptOptions{MaxPayload: 1000}, echo), protocol.DialOptions{})
	if err := c.Write(ctx, make([]byte, 1001)); err != nil {
		t.Fatal(err)
	}
	_, err := c.Read(ctx)
	if code, _, _ := closeStatus(err); code != protocol.CloseTooBig {
		t.Errorf("closed with %d (%v), want %d", code, err, protocol.CloseTooBig)
	}
}

func TestConnRefusesWhatIsNotText(t *testing.T) {
	for name, kind := range map[string]websocket.MessageType{"binary": websocket.MessageBinary, "bad UTF-8": websocket.MessageText} {
		t.Run(name, func(t *testing.T) {
			ctx := within(t)
			raw, _, err := websocket.Dial(ctx, serve(t, protocol.AcceptOptions{}, echo), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer raw.CloseNow()
			if err := raw.Write(ctx, kind, []byte{0xff, 0xfe}); err != nil {
				t.Fatal(err)
			}
			_, _, err = raw.Read(ctx)
			if code, _, _ := closeStatus(err); code != protocol.CloseUnsupported {
				t.Errorf("closed with %d (%v), want %d", code, err, protocol.CloseUnsupported)
			}
		})
	}
}

func TestConnChecksTheOrigin(t *testing.T) {
	url := serve(t, protocol.AcceptOptions{Origins: []string{"friend.example"}}, echo)
	for origin, welcome := range map[string]bool{"https://friend.example": true, "https://evil.example": false, "null": false} {
		c, err := protocol.Dial(within(t), url, protocol.DialOptions{Header: http.Header{"Origin": {origin}}})
		if (err == nil) != welcome {
			t.Errorf("%s: error %v, want welcome %v", origin, err, welcome)
		}
		if err == nil {
			c.Drop()
		}
	}
}

func TestConnCutsLongReasons(t *testing.T) {
	ctx := within(t)
	c := dial(t, serve(t, protocol.AcceptOptions{}, func(_ context.Context, c *protocol.Conn) {
		_ = c.Close(protocol.ClosePolicy, strings.Repeat("é", 100))
	}), protocol.DialOptions{})
	_, err := c.Read(ctx)
	if code, reason, ok := closeStatus(err); !ok || code != protocol.ClosePolicy || reason != strings.Repeat("é", 61) {
		t.Errorf("got %d %q %v", code, reason, ok)
	}
}

func TestPingNeedsSomebodyThere(t *testing.T) {
	ctx := within(t)
	release := make(chan struct{})
	deaf := serve(t, protocol.AcceptOptions{}, func(context.Context, *protocol.Conn) { <-release })
	defer close(release)
	c := dial(t, deaf, protocol.DialOptions{})
	go func() { _, _ = c.Read(ctx) }()
	soon, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	if err := c.Ping(soon); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a server that does not read answered a ping: %v", err)
	}
	live := dial(t, serve(t, protocol.AcceptOptions{}, echo), protocol.DialOptions{})
	go func() { _, _ = live.Read(ctx) }()
	if err := live.Ping(ctx); err != nil {
		t.Error(err)
	}
}

// closeStatus returns how the other side closed the connection; ok is false if it
// sent no close frame.
func closeStatus(err error) (code int, reason string, ok bool) {
	if e, is := errors.AsType[websocket.CloseError](err); is {
		return int(e.Code), e.Reason, true
	}
	return 0, "", false
}
