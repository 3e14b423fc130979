package ws_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/ws"
	"github.com/atoll-run/atoll/internal/secret"
)

// A task is answered twice; a repeated request is the same task.
func TestAgentAnswersTwice(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		p := gateway(t, ws.Limits{})
		e := p.connect(version, fixed)
		params := map[string]any{"message": "hi", "sessionKey": "main", "idempotencyKey": "once"}
		id := e.ask("agent", params)
		if f := e.answer(id, 1); f.text("status") != "accepted" || f.text("runId") != "once" {
			t.Errorf("first: %s", f.raw)
		}
		if f := e.answer(id, 2); f.text("status") != "ok" || f.text("result", "meta", "agentMeta", "model") != "fake-1" {
			t.Errorf("second: %s", f.raw)
		}
		if f := e.must("agent", params); f.text("status") != "ok" {
			t.Errorf("replayed: %s", f.raw)
		}
		params["message"] = "something else"
		if f := e.call("agent", params); f.OK || f.Error.Code != "INVALID_REQUEST" {
			t.Errorf("the key for another task: %s", f.raw)
		}
		if n := len(p.hand.seen()); n != 1 {
			t.Errorf("%d tasks were worked on", n)
		}
	})
}

func TestAgentThatFails(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		e := gateway(t, ws.Limits{}).connect(version, fixed)
		id := e.ask("agent", map[string]any{"message": "fail no luck", "idempotencyKey": "f"})
		if f := e.answer(id, 2); f.OK || f.Error.Code != "UNAVAILABLE" || f.Error.Message != "no luck" {
			t.Errorf("second: %s", f.raw)
		}
		if f := e.event("chat", map[string]string{"state": "error"}); f.text("errorMessage") != "no luck" {
			t.Errorf("%s", f.raw)
		}
		if f := e.must("agent.wait", map[string]any{"runId": "f"}); f.text("status") != "error" || f.text("error") != "no luck" {
			t.Errorf("%s", f.raw)
		}
	})
}

func TestChatIsAborted(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		e := gateway(t, ws.Limits{}).connect(version, fixed)
		params := map[string]any{"sessionKey": "main", "message": "wait forever", "idempotencyKey": "slow"}
		e.must("chat.send", params)
		e.event("chat", map[string]string{"state": "delta", "runId": "slow"})
		if f := e.must("chat.send", params); f.text("status") != "in_flight" {
			t.Errorf("said again: %s", f.raw)
		}
		if f := e.must("chat.abort", map[string]any{"sessionKey": "main", "runId": "slow"}); f.get("aborted") != true || fmt.Sprint(f.get("runIds")) != "[slow]" {
			t.Errorf("%s", f.raw)
		}
		if f := e.event("chat", map[string]string{"state": "aborted"}); f.text("stopReason") != "rpc" || f.get("message") == nil {
			t.Errorf("%s", f.raw)
		}
		if f := e.must("chat.abort", map[string]any{"sessionKey": "nobody"}); f.get("aborted") != false {
			t.Errorf("%s", f.raw)
		}
	})
}

// Deltas of the chat are few, and what they say adds up.
func TestChatDeltas(t *testing.T) {
	e := gateway(t, ws.Limits{Throttle: time.Hour}).connect(4, fixed)
	e.must("chat.send", map[string]any{"sessionKey": "main", "message": "hi", "idempotencyKey": "d"})
	e.event("chat", map[string]string{"state": "final"})
	text := ""
	frames, _, _ := e.so()
	for _, f := range frames {
		if f.Event == "chat" && f.text("state") == "delta" {
			text += "|" + f.text("deltaText")
		}
	}
	if text != "|Hello |from fake model." {
		t.Errorf("deltas: %q", text)
	}
}

// Tool events go to the connection that submitted the task, and only if it asked
// for them.
func TestToolsAreToldToTheOrigin(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		p := gateway(t, ws.Limits{})
		quiet := offer(version, fixed)
		quiet["caps"] = []string{}
		asks, listens, silent := p.connect(version, fixed), p.connect(version, fixed), p.connectAs(quiet)
		asks.must("agent", map[string]any{"message": "tool", "idempotencyKey": "a"})
		f := asks.event("agent", map[string]string{"stream": "tool", "data.phase": "start"})
		if f.text("data", "name") != "exec" || f.text("data", "args", "command") != "echo hi" || f.Seq != 0 {
			t.Errorf("%s", f.raw)
		}
		asks.event("agent", map[string]string{"stream": "tool", "data.phase": "result"})
		silent.must("agent", map[string]any{"message": "tool", "idempotencyKey": "b"})
		for _, e := range []*peer{listens, silent} {
			for _, id := range []string{"a", "b"} {
				e.event("chat", map[string]string{"runId": id, "state": "final"})
			}
			if strings.Contains(e.transcript(), `"stream":"tool"`) {
				t.Errorf("told of tools: %s", e.transcript())
			}
		}
	})
}

// The output of a tool is sent only where the session says so.
func TestResultsOfToolsAreToldWhenFull(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		e := gateway(t, ws.Limits{}).connect(version, fixed)
		for level, want := range map[string]int{"full": 1, "on": 0, "off": 0} {
			e.must("sessions.patch", map[string]any{"key": level, "verboseLevel": level})
			e.must("agent", map[string]any{"message": "tool", "idempotencyKey": level, "sessionKey": level})
			f := e.event("agent", map[string]string{"runId": level, "stream": "tool", "data.phase": "result"})
			content, _ := f.get("data", "result", "content").([]any)
			if len(content) != want || want > 0 && !strings.Contains(string(f.raw), `"text":"hi"`) {
				t.Errorf("%s: %s", level, f.raw)
			}
		}
	})
}

// A task thinks as its session says, or as it says itself; a request names its trace.
func TestLevelsAndTraceGoWithTheTask(t *testing.T) {
	p := gateway(t, ws.Limits{})
	e := p.connect(4, fixed)
	e.must("sessions.patch", map[string]any{"key": "main", "thinkingLevel": "low"})
	e.answer(e.ask("agent", map[string]any{"message": "a", "idempotencyKey": "a", "sessionKey": "main"}), 2)
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	e.say(map[string]any{"type": "req", "id": "traced", "method": "agent", "traceparent": "00-" + trace + "-00f067aa0ba902b7-01",
		"params": map[string]any{"message": "b", "idempotencyKey": "b", "sessionKey": "main", "thinking": "high"}})
	e.answer("traced", 2)
	jobs := p.hand.seen()
	if len(jobs) != 2 || jobs[0].Levels["thinkingLevel"] != "low" || jobs[0].Trace != "" || jobs[1].Levels["thinkingLevel"] != "high" || jobs[1].Trace != trace {
		t.Errorf("%+v", jobs)
	}
	if f := e.call("agent", map[string]any{"message": "c", "idempotencyKey": "c", "thinking": "hardest"}); f.OK || f.Error.Code != "INVALID_REQUEST" {
		t.Errorf("%s", f.raw)
	}
}

func TestSessions(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		e := gateway(t, ws.Limits{}).connect(version, fixed)
		e.answer(e.ask("agent", map[string]any{"message": "hi", "sessionKey": "agent:work:x", "idempotencyKey": "a"}), 2)
		f := e.must("sessions.patch", map[string]any{"key": "agent:work:x", "model": "fake/fake-2", "thinkingLevel": "high", "label": "mine"})
		if f.text("resolved", "model") != "fake-2" || f.text("entry", "label") != "mine" || f.text("entry", "thinkingLevel") != "high" {
			t.Errorf("%s", f.raw)
		}
		if f := e.call("sessions.patch", map[string]any{"key": "agent:work:x", "model": "no/such"}); f.OK || f.Error.Code != "INVALID_REQUEST" {
			t.Errorf("a model that is not there: %s", f.raw)
		}
		if f := e.must("sessions.list", map[string]any{"agentId": "work"}); f.get("count") != 1.0 {
			t.Errorf("%s", f.raw)
		}
		if f := e.must("chat.history", map[string]any{"sessionKey": "agent:work:x"}); len(messagesOf(f)) != 2 {
			t.Errorf("%s", f.raw)
		}
		if f := e.must("sessions.compact", map[string]any{"key": "agent:work:x"}); f.get("compacted") != true || f.get("kept") != 1.0 {
			t.Errorf("%s", f.raw)
		}
		before := e.must("sessions.list", nil).raw
		if f := e.must("sessions.reset", map[string]any{"key": "agent:work:x"}); strings.Contains(string(before), f.text("entry", "sessionId")) {
			t.Errorf("the transcript is still the same: %s", f.raw)
		}
		if f := e.must("chat.history", map[string]any{"sessionKey": "agent:work:x"}); len(messagesOf(f)) != 0 {
			t.Errorf("%s", f.raw)
		}
		if f := e.must("sessions.delete", map[string]any{"key": "agent:work:x"}); f.get("deleted") != true {
			t.Errorf("%s", f.raw)
		}
		if f := e.must("sessions.list", nil); f.get("count") != 0.0 {
			t.Errorf("%s", f.raw)
		}
	})
}

// A configuration's password lets in, a wrong one does not, and guessing is slowed down.
func TestPassword(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		p := gateway(t, ws.Limits{})
		p.tokens.SetFixed(map[string]secret.Value{"gateway.auth.password": secret.New("open sesame")})
		h := offer(version, "")
		h["auth"] = map[string]any{"password": "open sesame"}
		e := p.dial()
		e.event("connect.challenge", nil)
		f := e.must("connect", h)
		if f.text("snapshot", "authMode") != "password" || version == 4 && f.text("auth", "method") != "password" {
			t.Errorf("%s", f.raw)
		}
		e.must("sessions.list", nil)
		last := ""
		for range 30 {
			h["auth"] = map[string]any{"password": "open barley"}
			e := p.dial()
			e.event("connect.challenge", nil)
			f := e.call("connect", h)
			var details struct{ Code string }
			if f.OK || json.Unmarshal(f.Error.Details, &details) != nil || strings.Contains(string(f.raw), "barley") {
				t.Fatalf("%s", f.raw)
			}
			if last == "" && details.Code != "AUTH_PASSWORD_MISMATCH" {
				t.Errorf("%s", f.raw)
			}
			if last = details.Code; last == "AUTH_RATE_LIMITED" {
				return
			}
		}
		t.Errorf("guessing goes on: %s", last)
	})
}

// A token's scope bounds what is granted, whatever is asked for.
func TestScopes(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		p := gateway(t, ws.Limits{})
		code := "INVALID_REQUEST"
		if version == 4 {
			code = "FORBIDDEN"
		}
		for _, c := range []struct {
			scope           access.Scope
			read, run, edit bool
		}{{access.Read, true, false, false}, {access.Run, true, true, false}, {access.Operator, true, true, true}} {
			e := p.connect(version, p.token(c.scope, "a"))
			for method, may := range map[string]bool{"agents.list": c.read, "chat.abort": c.run, "sessions.reset": c.edit} {
				f := e.call(method, map[string]any{"sessionKey": "main", "key": "main"})
				refused := f.Error != nil && strings.HasPrefix(f.Error.Message, "missing scope: operator.")
				if refused == may || refused && f.Error.Code != code {
					t.Errorf("%s may %s: %s", c.scope, method, f.raw)
				}
			}
		}
	})
}

// key is a device's, as clients make it.
type key struct {
	private ed25519.PrivateKey
	public  string
	id      string
}

func newKey(t *testing.T) key {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(public)
	return key{private, base64.RawURLEncoding.EncodeToString(public), hex.EncodeToString(sum[:])}
}

// sign proves a device, in the form of version 4.
func (k key) sign(h hello, token, nonce string, at time.Time) map[string]any {
	c := h["client"].(map[string]any)
	scopes := strings.Join(h["scopes"].([]string), ",")
	payload := strings.Join([]string{"v3", k.id, c["id"].(string), c["mode"].(string), "operator", scopes, fmt.Sprint(at.UnixMilli()), token, nonce, "linux", ""}, "|")
	return map[string]any{
		"id": k.id, "publicKey": k.public, "signedAt": at.UnixMilli(), "nonce": nonce,
		"signature": base64.RawURLEncoding.EncodeToString(ed25519.Sign(k.private, []byte(payload))),
	}
}

// A device that signs is paired on this machine and gets a token of its own, which
// it can use the next time; a signature that is old, for another nonce or by
// another key is refused.
func TestDevices(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		p := gateway(t, ws.Limits{})
		k := newKey(t)
		meet := func(token string, change func(h hello, nonce string)) *frame {
			e := p.dial()
			nonce := e.event("connect.challenge", nil).text("nonce")
			h := offer(version, "")
			h["client"].(map[string]any)["id"], h["client"].(map[string]any)["mode"] = "cli", "cli"
			h["device"] = k.sign(h, token, nonce, time.Now())
			h["auth"] = map[string]any{"token": token}
			if change != nil {
				change(h, nonce)
			}
			return e.call("connect", h)
		}
		first := meet(fixed, nil)
		own := first.text("auth", "deviceToken")
		if !first.OK || own == "" || fmt.Sprint(first.get("auth", "scopes")) != "[operator.admin operator.read operator.write]" {
			t.Fatalf("a new device on this machine: %s", first.raw)
		}
		again := meet(own, func(h hello, _ string) { h["auth"] = map[string]any{"deviceToken": own} })
		if !again.OK {
			t.Errorf("by its own token: %v", again.Error)
		}
		for reason, change := range map[string]func(h hello, nonce string){
			"device-signature-stale": func(h hello, nonce string) { h["device"] = k.sign(h, fixed, nonce, time.Now().Add(-time.Hour)) },
			"device-nonce-mismatch":  func(h hello, _ string) { h["device"] = k.sign(h, fixed, "another", time.Now()) },
			"device-signature":       func(h hello, _ string) { h["scopes"] = []string{"operator.read"} },
			"device-id-mismatch":     func(h hello, _ string) { h["device"].(map[string]any)["id"] = newKey(t).id },
		} {
			f := meet(fixed, change)
			if f.OK || f.Error.Code != "INVALID_REQUEST" || !strings.Contains(string(f.Error.Details), `"reason":"`+reason+`"`) {
				t.Errorf("%s: %s", reason, f.raw)
			}
		}
	})
}

// In version 4 a token alone carries no scopes, but from a program on this machine.
func TestScopesWithoutADevice(t *testing.T) {
	p := gateway(t, ws.Limits{})
	h := offer(4, fixed)
	h["client"].(map[string]any)["id"], h["client"].(map[string]any)["mode"] = "test", "test"
	e := p.connectAs(h)
	e.must("health", nil)
	if f := e.call("agents.list", nil); f.OK || f.Error.Code != "FORBIDDEN" {
		t.Errorf("%s", f.raw)
	}
	old := offer(3, fixed)
	old["client"] = h["client"]
	p.connectAs(old).must("agents.list", nil)
}

// The model of a session is in force for the very next task.
func TestModelOfTheSession(t *testing.T) {
	p := gateway(t, ws.Limits{})
	e := p.connect(4, fixed)
	for i, model := range []string{"fake/fake-2", "fake/fake-1", ""} {
		var value any = model
		if model == "" {
			value = nil
		}
		e.must("sessions.patch", map[string]any{"key": "main", "model": value})
		e.answer(e.ask("agent", map[string]any{"message": "hi", "idempotencyKey": fmt.Sprint("m", i)}), 2)
		if jobs := p.hand.seen(); jobs[len(jobs)-1].Model != model {
			t.Errorf("task %d asked %q, want %q", i, jobs[len(jobs)-1].Model, model)
		}
	}
}

// A long answer is sent in fewer frames, and nothing of it is missing.
func TestLongAnswersAreToldInFewerFrames(t *testing.T) {
	e := gateway(t, ws.Limits{}).connect(4, fixed)
	e.must("agent", map[string]any{"message": "words 20", "idempotencyKey": "w"})
	final := e.event("chat", map[string]string{"state": "final"})
	text, told := "", 0
	frames, _, _ := e.so()
	for _, f := range frames {
		if f.text("stream") == "assistant" {
			told++
			if text += f.text("data", "delta"); text != f.text("data", "text") {
				t.Fatalf("after %d frames the text is not what was said", told)
			}
		}
	}
	if want := strings.Repeat("word ", 4000); text != want || told >= 4000 {
		t.Errorf("%d frames told %d characters, want %d", told, len(text), len(want))
	}
	if !strings.Contains(string(final.raw), text) {
		t.Error("the end has another text")
	}
}

// More tasks than calls may wait are answered all the same.
func TestManyTasksOfOneConnection(t *testing.T) {
	p := gateway(t, ws.Limits{Calls: 4})
	e := p.connect(4, fixed)
	var ids []string
	for i := range 20 {
		ids = append(ids, e.ask("agent", map[string]any{"message": "wait all", "sessionKey": fmt.Sprint("s", i), "idempotencyKey": fmt.Sprint("t", i)}))
	}
	close(p.hand.gate("all"))
	for _, id := range ids {
		if f := e.answer(id, 2); f.text("status") != "ok" {
			t.Errorf("%s: %s", id, f.raw)
		}
	}
}
