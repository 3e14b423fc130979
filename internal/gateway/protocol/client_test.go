package protocol_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/gateway/protocol"
)

const gatewayToken = "the-token-of-the-gateway-0123456789"

// client returns a client of a gateway, closed with the test.
func client(t *testing.T, url string, change ...func(*protocol.ClientOptions)) *protocol.Client {
	t.Helper()
	o := protocol.ClientOptions{
		URL: url, Token: func(context.Context) (string, error) { return gatewayToken, nil },
		RetryMin: 5 * time.Millisecond, RetryMax: 50 * time.Millisecond, Timeout: 30 * time.Second,
	}
	for _, f := range change {
		f(&o)
	}
	c := protocol.NewClient(o)
	t.Cleanup(c.Close)
	return c
}

// host is the gateway's end of a client's connection, driven by a test.
type host struct {
	t    *testing.T
	conn *protocol.Conn
	ctx  context.Context
}

func (h *host) send(frame any) bool {
	text, ok := frame.(string)
	if !ok {
		data, err := json.Marshal(frame)
		if err != nil {
			h.t.Error(err)
		}
		text = string(data)
	}
	return h.conn.Write(h.ctx, []byte(text)) == nil
}

// take returns the client's next request; nil at the end of the connection.
func (h *host) take() *protocol.Request {
	data, err := h.conn.Read(h.ctx)
	if err != nil {
		return nil
	}
	r := &protocol.Request{}
	if err := json.Unmarshal(data, r); err != nil {
		h.t.Error(err)
	}
	return r
}

func (h *host) answer(id string, payload any) bool {
	return h.send(map[string]any{"type": "res", "id": id, "ok": true, "payload": payload})
}

const challenge = `{"type":"event","event":"connect.challenge","payload":{"nonce":"n-1","ts":1}}`

// hello is the hello of a gateway that has run for a while.
func hello(boot string, uptimeMs int64) map[string]any {
	return map[string]any{
		"type": "hello-ok", "protocol": 4, "server": map[string]any{"version": "t", "connId": "c", "bootId": boot},
		"features": map[string]any{"methods": []string{"agent", "agent.wait", "sessions.patch", "chat.abort"}},
		"snapshot": map[string]any{"uptimeMs": uptimeMs},
		"auth":     map[string]any{"role": "operator", "scopes": protocol.DefaultScopes()},
		"policy":   map[string]any{"maxPayload": 1 << 20, "tickIntervalMs": 30000},
	}
}

// gateway serves clients after the handshake, and passes them to talk with their
// number.
func gateway(t *testing.T, greeting func(n int32) map[string]any, talk func(n int32, h *host)) string {
	t.Helper()
	var count atomic.Int32
	return serve(t, protocol.AcceptOptions{MaxPayload: protocol.MaxPayload}, func(ctx context.Context, c *protocol.Conn) {
		n, h := count.Add(1), &host{t, c, ctx}
		h.send(challenge)
		if connect := h.take(); connect != nil && h.answer(connect.ID, greeting(n)) {
			talk(n, h)
		}
	})
}

func sameBoot(int32) map[string]any { return hello("boot-1", 60_000) }

// replay plays a gateway's part of a recording, with the ids of the client at hand.
func replay(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, protocol.AcceptOptions{}, func(ctx context.Context, c *protocol.Conn) {
		h, ids := &host{t, c, ctx}, map[string]string{}
		for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
			var line struct {
				Dir   string
				Frame map[string]any
			}
			if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
				t.Error(err)
				return
			}
			if line.Dir == ">" {
				r := h.take()
				if r == nil || r.Method != line.Frame["method"] {
					t.Errorf("the client sends %+v; recorded was %v", r, line.Frame["method"])
					return
				}
				ids[line.Frame["id"].(string)] = r.ID
				continue
			}
			if id, ok := line.Frame["id"].(string); ok {
				line.Frame["id"] = ids[id]
			}
			if !h.send(line.Frame) {
				return
			}
		}
		h.take()
	})
}

func TestClientPlaysARecording(t *testing.T) {
	for file, version := range map[string]int{"v3.jsonl": protocol.V3, "v4.jsonl": protocol.V4} {
		t.Run(file, func(t *testing.T) {
			ctx, c := within(t), client(t, replay(t, file))
			said, err := c.Hello(ctx)
			if err != nil || said.Protocol != version {
				t.Fatalf("%+v, %v", said, err)
			}
			stream := c.Stream("agent:main:main")
			defer stream.Close()
			turn, err := c.Agent(ctx, &protocol.AgentParams{Message: "hi from ws", SessionKey: "agent:main:main", IdempotencyKey: "idem-agent-1"})
			if err != nil || turn.RunID != "idem-agent-1" {
				t.Fatalf("%+v, %v", turn, err)
			}
			end, err := turn.Wait(ctx)
			if err != nil || end.Status != "ok" || !strings.Contains(string(end.Result), "Hello from fake model.") {
				t.Errorf("%+v, %v", end, err)
			}
			if text := spoken(t, stream.Take()); text != "Hello from fake model." {
				t.Errorf("the stream says %q", text)
			}
			var refused *protocol.Error
			if err := c.Call(ctx, "no.such.method", map[string]any{}, nil); !errors.As(err, &refused) || refused.Code != protocol.CodeInvalidRequest {
				t.Errorf("%v", err)
			}
		})
	}
}

func spoken(t *testing.T, events []protocol.SessionEvent) (text string) {
	t.Helper()
	for _, e := range events {
		var data struct{ Delta string }
		if err := json.Unmarshal(e.Data, &data); err != nil {
			t.Fatal(err)
		}
		text += data.Delta
	}
	return text
}

func refusing(t *testing.T, reason string) string {
	t.Helper()
	return serve(t, protocol.AcceptOptions{}, func(ctx context.Context, c *protocol.Conn) {
		h := &host{t, c, ctx}
		h.send(challenge)
		if r := h.take(); r != nil {
			h.send(fmt.Sprintf(`{"type":"res","id":%q,"ok":false,"error":%s}`, r.ID, reason))
			_ = c.Close(protocol.ClosePolicy, "no")
		}
	})
}

// A gateway that refuses the client is distinguished from one that is not up yet,
// and the error never contains the token.
func TestClientIsRefused(t *testing.T) {
	var log bytes.Buffer
	url := refusing(t, `{"code":"INVALID_REQUEST","message":"unauthorized","details":{"code":"AUTH_TOKEN_MISMATCH"}}`)
	c := client(t, url, func(o *protocol.ClientOptions) {
		o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	_, err := c.Hello(within(t))
	refusal, ok := errors.AsType[*protocol.Refusal](err)
	if !ok || refusal.Reason.Detail() != "AUTH_TOKEN_MISMATCH" {
		t.Fatalf("%v", err)
	}
	c.Close()
	if strings.Contains(err.Error()+log.String(), gatewayToken) {
		t.Error("the token is in an error or a log")
	}
}

func TestClientWaitsForAGatewayThatIsNotReady(t *testing.T) {
	c := client(t, refusing(t, `{"code":"UNAVAILABLE","message":"starting","retryable":true}`))
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := c.Hello(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	blind := client(t, "ws://127.0.0.1:1", func(o *protocol.ClientOptions) { o.Timeout = 300 * time.Millisecond })
	if _, err := blind.Hello(t.Context()); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("it is not said why there is no connection: %v", err)
	}
}

func TestClientProvesItsDevice(t *testing.T) {
	device, err := protocol.NewDevice(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	proofs := make(chan protocol.Connect, 1)
	url := serve(t, protocol.AcceptOptions{}, func(ctx context.Context, c *protocol.Conn) {
		h := &host{t, c, ctx}
		h.send(challenge)
		if r := h.take(); r != nil {
			var p protocol.Connect
			if err := json.Unmarshal(r.Params, &p); err != nil {
				t.Error(err)
			}
			proofs <- p
			h.answer(r.ID, sameBoot(1))
			h.take()
		}
	})
	c := client(t, url, func(o *protocol.ClientOptions) { o.Device = device })
	if _, err := c.Hello(within(t)); err != nil {
		t.Fatal(err)
	}
	p := <-proofs
	if p.Device == nil || p.Device.ID != device.ID() || p.Device.Nonce != "n-1" || !signed(&p) {
		t.Errorf("%+v", p.Device)
	}
}
