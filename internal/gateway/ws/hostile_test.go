package ws_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/protocol"
	"github.com/atoll-run/atoll/internal/gateway/ws"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// A client that does not begin with connect is closed, with OpenClaw's codes.
func TestStrangersAreSentAway(t *testing.T) {
	p := gateway(t, ws.Limits{})
	deep := `{"type":"req","id":"a","method":"connect","params":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`
	for _, c := range []struct {
		name, first string
		code        int
		reason      string
	}{
		{"no JSON", "garbage", 1000, ""},
		{"an array", "[]", 1008, "invalid request frame"},
		{"no id", `{"type":"req","method":"connect"}`, 1008, "invalid request frame"},
		{"another method", `{"type":"req","id":"a","method":"health"}`, 1008, "invalid handshake: first request must be connect"},
		{"no parameters", `{"type":"req","id":"a","method":"connect"}`, 1008, "invalid connect params: must be object"},
		{"deep", deep, 1000, ""},
		{"a key twice", `{"type":"req","id":"a","id":"b","method":"connect","params":{}}`, 1000, ""},
		{"a key in another case", `{"type":"req","id":"a","Method":"connect","params":{}}`, 1008, "invalid request frame"},
		{"an event", `{"type":"event","event":"agent","payload":{}}`, 1008, "invalid request frame"},
		{"a large first frame", `{"type":"req","id":"` + strings.Repeat("x", 64<<10) + `"}`, 1009, ""},
		{"a role that is none", `{"type":"req","id":"a","method":"connect","params":{"minProtocol":4,"maxProtocol":4,"role":"node","client":{"id":"test","version":"1","platform":"linux","mode":"test"},"auth":{"token":"` + fixed + `"}}}`, 1008, "invalid role"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := p.dial()
			e.event("connect.challenge", nil)
			e.say([]byte(c.first))
			code, reason := e.closed()
			if code != c.code || c.code != 1009 && reason != c.reason {
				t.Errorf("closed with %d %q, want %d %q", code, reason, c.code, c.reason)
			}
		})
	}
	if n := p.Connections(); n != 0 {
		t.Errorf("%d strangers are counted as clients", n)
	}
}

func TestSilenceIsNotWaitedFor(t *testing.T) {
	p := gateway(t, ws.Limits{Handshake: 300 * time.Millisecond})
	if code, _ := p.dial().closed(); code != protocol.CloseNormal {
		t.Errorf("closed with %d", code)
	}
}

// Ten thousand connections that send nothing do not keep a client out for long, and
// more than the limit are refused.
func TestManyStrangers(t *testing.T) {
	const workers = 100
	strangers := need.Rounds(2_000, 10_000)
	p := gateway(t, ws.Limits{Handshake: time.Second, Unauthenticated: 50})
	var wg sync.WaitGroup
	var let, refused atomic.Int64
	for range workers {
		wg.Go(func() {
			for range strangers / workers {
				c, err := protocol.Dial(t.Context(), p.url, protocol.DialOptions{})
				if err != nil {
					refused.Add(1)
					continue
				}
				let.Add(1)
				t.Cleanup(c.Drop)
			}
		})
	}
	wg.Wait()
	if let.Load() < 50 || refused.Load() == 0 || let.Load()+refused.Load() != int64(strangers) {
		t.Errorf("%d were let in, %d refused", let.Load(), refused.Load())
	}
	deadline := time.Now().Add(testTimeout)
	for {
		c, err := protocol.Dial(t.Context(), p.url, protocol.DialOptions{})
		if err == nil {
			client := p.peerOn(c)
			client.greet(offer(4, fixed))
			client.must("health", nil)
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("nobody is let in any more:", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// After hello, what makes no sense is answered, and the connection goes on; what is
// too large or no text ends it.
func TestBadFramesOfClients(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		p := gateway(t, ws.Limits{Frame: 1 << 20})
		e := p.connect(version, fixed)
		for i, bad := range []string{"garbage", "[]", `{"type":"req","id":5,"method":"x"}`, `{"a":1,"a":2}`, strings.Repeat(`{"a":`, 20_000) + "1" + strings.Repeat("}", 20_000)} {
			e.say([]byte(bad))
			f := e.answer("invalid", i+1)
			if f.OK || f.Error.Code != "INVALID_REQUEST" || !strings.HasPrefix(f.Error.Message, "invalid request frame: ") {
				t.Errorf("%.40s: %s", bad, f.raw)
			}
		}
		if f := e.call("agent", map[string]any{"message": strings.Repeat("x", 100), "idempotencyKey": "a", "outboundHeaders": map[string]any{"X-A": "b\r\nX-Evil: 1"}}); f.OK || f.Error.Code != "INVALID_REQUEST" {
			t.Errorf("a header with a line break: %s", f.raw)
		}
		if f := e.call("sessions.patch", map[string]any{"key": "main", "outboundHeaders": map[string]any{"X-A\n": "b"}}); f.OK || f.Error.Code != "INVALID_REQUEST" {
			t.Errorf("a header name with a line break: %s", f.raw)
		}
		e.must("health", nil)
		e.say(bytes.Repeat([]byte("x"), 1<<20+1))
		if code, _ := e.closed(); code != protocol.CloseTooBig {
			t.Errorf("a frame too large closed with %d", code)
		}
		p.connect(version, fixed).must("health", nil)
	})
}

func TestA26MBFrameIsRefused(t *testing.T) {
	p := gateway(t, ws.Limits{})
	e := p.connect(4, fixed)
	if err := e.Write(e.ctx, make([]byte, 26_214_401)); err == nil {
		if code, _ := e.closed(); code != protocol.CloseTooBig {
			t.Errorf("closed with %d", code)
		}
	}
	p.connect(4, fixed).must("health", nil)
}

// A client that guesses tokens is slowed down, and learns nothing.
func TestWrongTokens(t *testing.T) {
	p := gateway(t, ws.Limits{})
	seen := map[string]int{}
	for i := range 2 * access.Failures {
		e := p.dial()
		f := e.call("connect", offer(4, fmt.Sprint("wrong", i)))
		if f.OK {
			t.Fatal("let in with a wrong token")
		}
		if code, _ := e.closed(); code != protocol.ClosePolicy {
			t.Errorf("closed with %d", code)
		}
		seen[f.Error.Message]++
	}
	if seen["unauthorized: gateway token mismatch (provide gateway auth token)"] != access.Failures || seen["unauthorized: too many failed authentication attempts (retry later)"] != access.Failures {
		t.Errorf("answers: %v", seen)
	}
}

// Connections end with their token.
func TestRevokedTokenEndsItsConnections(t *testing.T) {
	p := gateway(t, ws.Limits{})
	text, token, err := p.tokens.Create(t.Context(), access.Spec{Name: "short", Scope: access.Run, Account: "a"})
	if err != nil {
		t.Fatal(err)
	}
	one, two, other := p.connect(4, text.Reveal()), p.connect(3, text.Reveal()), p.connect(4, fixed)
	if err := p.tokens.Revoke(t.Context(), token.ID); err != nil {
		t.Fatal(err)
	}
	for _, e := range []*peer{one, two} {
		if code, _ := e.closed(); code != protocol.ClosePolicy {
			t.Errorf("closed with %d", code)
		}
	}
	other.must("health", nil)
}

// sink is a client that stops reading after its hello.
func sink(t *testing.T, p *testGateway, token string) *protocol.Conn {
	t.Helper()
	return unreadConn(t, p, token, func(c net.Conn) net.Conn { return c })
}

// unreadConn is the same with a wrapped connection.
func unreadConn(t *testing.T, p *testGateway, token string, around func(net.Conn) net.Conn) *protocol.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	c, err := protocol.Dial(ctx, p.url, protocol.DialOptions{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		raw, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return around(raw), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Drop)
	if _, err := c.Read(ctx); err != nil { // the challenge
		t.Fatal(err)
	}
	data := []byte(`{"type":"req","id":"1","method":"connect","params":{"minProtocol":4,"maxProtocol":4,"scopes":["operator.read","operator.write"],"client":{"id":"gateway-client","version":"1","platform":"linux","mode":"backend"},"auth":{"token":"` + token + `"}}}`)
	if err := c.Write(ctx, data); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(ctx); err != nil { // hello
		t.Fatal(err)
	}
	return c
}

// A client that does not read is dropped when it has left too much, and no other
// waits for it.
func TestSlowConsumerHarmsNobody(t *testing.T) {
	p := gateway(t, ws.Limits{Buffered: 4 << 20, Grace: 100 * time.Millisecond, Ping: time.Hour})
	_ = sink(t, p, fixed)
	quick := p.connect(4, fixed)
	deadline := time.Now().Add(testTimeout)
	for i := 0; p.Connections() == 2; i++ {
		if time.Now().After(deadline) {
			t.Fatal("the slow client is still there")
		}
		id := fmt.Sprint("long", i)
		quick.must("agent", map[string]any{"message": "long 300", "idempotencyKey": id, "sessionKey": "main"})
		quick.event("chat", map[string]string{"runId": id, "state": "final"})
	}
	if p.Connections() != 1 {
		t.Errorf("%d connections are left, want the quick one", p.Connections())
	}
	if n := p.counted(`atoll_gateway_clients_dropped_total{reason="slow"}`); n != "1" {
		t.Errorf("%q slow clients were counted", n)
	}
	quick.must("health", nil)
}

// Shared frames are in memory once: clients that are behind together are not
// dropped for what each of them alone may leave.
func TestWhatManyHaveToReadIsCountedOnce(t *testing.T) {
	const turns, clients = 8, 8
	p := gateway(t, ws.Limits{AllBuffered: 40 << 20, Ping: time.Hour})
	for range clients {
		_ = sink(t, p, fixed)
	}
	quick := p.connect(4, fixed)
	for i := range turns { // each tells as many characters a few times
		quick.must("agent", map[string]any{"message": "long 600", "idempotencyKey": fmt.Sprint("long", i), "sessionKey": "main"})
	}
	last := fmt.Appendf(nil, `"runId":"long%d","seq"`, turns-1)
	quick.find("the last end", 1, func(f *frame) bool {
		return f.Event == "chat" && bytes.Contains(f.raw, last) && bytes.Contains(f.raw, []byte(`"state":"final"`))
	})
	if n := p.counted(`atoll_gateway_clients_dropped_total{reason="slow"}`); n != "" {
		t.Errorf("%s clients were given up", n)
	}
}

// A client whose machine is gone does not answer pings, and is dropped.
func TestHalfOpenConnectionIsNoticed(t *testing.T) {
	p := gateway(t, ws.Limits{Ping: 200 * time.Millisecond})
	_ = sink(t, p, fixed) // nobody reads there, so nobody answers
	live := p.connect(4, fixed)
	deadline := time.Now().Add(testTimeout)
	for p.Connections() > 1 {
		if time.Now().After(deadline) {
			t.Fatal("the dead connection is still there")
		}
		time.Sleep(20 * time.Millisecond)
	}
	live.must("health", nil)
}

// Too many waiting calls of one connection are refused, and its others go on.
func TestWaitingCallsAreBounded(t *testing.T) {
	p := gateway(t, ws.Limits{Calls: 4})
	e := p.connect(4, fixed)
	for range 6 {
		e.ask("agent.wait", map[string]any{"runId": "never", "timeoutMs": 60_000})
	}
	f := e.find("a refusal", 2, func(f *frame) bool { return f.Error != nil && f.Error.Code == "UNAVAILABLE" })
	if !f.Error.Retryable {
		t.Errorf("%s", f.raw)
	}
	e.must("health", nil)
}

func TestRequestsAreCountedByToken(t *testing.T) {
	p := gateway(t, ws.Limits{})
	text, _, err := p.tokens.Create(t.Context(), access.Spec{Name: "few", Scope: access.Read, Account: "a", Quota: access.Quota{Requests: 5}})
	if err != nil {
		t.Fatal(err)
	}
	e := p.connect(4, text.Reveal())
	for range 8 {
		e.ask("agents.list", nil)
	}
	f := e.answer("q9", 1)
	if f.OK || f.Error.Code != "UNAVAILABLE" || !f.Error.Retryable {
		t.Errorf("the eighth request: %s", f.raw)
	}
}

// Pages of other sites cannot connect.
func TestOtherOrigins(t *testing.T) {
	p := gateway(t, ws.Limits{})
	_, err := protocol.Dial(t.Context(), p.url, protocol.DialOptions{Header: http.Header{"Origin": {"https://evil.example"}}})
	if err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("a page of another site: %v", err)
	}
}

func TestHealthIsToldWhenItChanges(t *testing.T) {
	p := gateway(t, ws.Limits{Tick: 50 * time.Millisecond})
	e := p.connect(4, fixed)
	e.event("tick", nil)
	p.fallIll(errors.New("no engine"))
	f := e.event("health", nil)
	if f.get("ok") != false {
		t.Errorf("%s", f.raw)
	}
	if f := e.must("health", nil); f.get("ok") != false {
		t.Errorf("%s", f.raw)
	}
}
