package ws_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/atoll-run/atoll/internal/gateway/protocol"
	"github.com/atoll-run/atoll/internal/gateway/ws"
)

// turns is how often a very short turn is repeated: what comes in the wrong order
// does so now and then.
const turns = 25

// The frames of a task that takes no time come in the order of one that does: it is
// accepted, begins, uses a tool, ends, the chat has its last word, and only then
// comes the answer about its end.
func TestOrderOfVeryShortTurns(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		e := gateway(t, ws.Limits{}).connect(version, fixed)
		for i := range turns {
			id := fmt.Sprint("quick", i)
			asked := e.ask("agent", map[string]any{"sessionKey": "main", "message": "tool", "idempotencyKey": id})
			waits := e.ask("agent.wait", map[string]any{"runId": id})
			e.answer(asked, 2)
			e.answer(waits, 1)
			inOrder(t, e, id, "answer "+asked, "lifecycle start", "tool start", "tool result", "assistant", "lifecycle end", "chat final", "answer "+asked)
			inOrder(t, e, id, "chat final", "answer "+waits)
		}
	})
}

// The same of a chat, whose answer comes at once and alone.
func TestOrderOfVeryShortChats(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		e := gateway(t, ws.Limits{}).connect(version, fixed)
		for i := range turns {
			id := fmt.Sprint("quick", i)
			asked := e.ask("chat.send", map[string]any{"sessionKey": "main", "message": "tool", "idempotencyKey": id})
			e.event("chat", map[string]string{"runId": id, "state": "final"})
			inOrder(t, e, id, "answer "+asked, "lifecycle start", "tool start", "tool result", "assistant", "lifecycle end", "chat final")
		}
	})
}

// inOrder checks that the frames of a task contain some, in this order, the first of
// them before every other of the task.
func inOrder(t *testing.T, e *peer, task string, want ...string) {
	t.Helper()
	var got []string
	frames, _, _ := e.so()
	for _, f := range frames {
		if label := labelOf(f, task); label != "" {
			got = append(got, label)
		}
	}
	got = got[max(0, slices.Index(got, want[0])):]
	rest := got
	for _, label := range want {
		at := slices.Index(rest, label)
		if at < 0 {
			t.Fatalf("%s: %q does not come in its place:\n%s", task, label, strings.Join(got, "\n"))
		}
		rest = rest[at+1:]
	}
	if strings.HasPrefix(want[0], "answer") && slices.Index(labels(frames, task), "lifecycle start") < slices.Index(labels(frames, task), want[0]) {
		t.Fatalf("%s begins before it is accepted:\n%s", task, strings.Join(labels(frames, task), "\n"))
	}
}

func labels(frames []*frame, task string) (all []string) {
	for _, f := range frames {
		if label := labelOf(f, task); label != "" {
			all = append(all, label)
		}
	}
	return all
}

// labelOf names a frame of a task; "" is one of something else.
func labelOf(f *frame, task string) string {
	switch {
	case f.text("runId") != task:
		return ""
	case f.Type == "res":
		return "answer " + f.ID
	case f.Event == "chat":
		return "chat " + f.text("state")
	}
	return strings.TrimSpace(f.text("stream") + " " + f.text("data", "phase"))
}

// tap remembers what was read from a connection.
type tap struct {
	net.Conn
	mu   sync.Mutex
	read bytes.Buffer
}

func (c *tap) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read.Write(p[:n])
	return n, err
}

func (c *tap) has(text string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Contains(c.read.Bytes(), []byte(text))
}

// Clients that read several frames at once act on events before they act on the
// answer that came before them: so events wait until a client has shown that it has
// read the answer.
func TestEventsWaitUntilTheAnswerIsRead(t *testing.T) {
	p := gateway(t, ws.Limits{AckWait: testTimeout})
	other := p.connect(4, fixed)
	var wire *tap
	c := unreadConn(t, p, fixed, func(raw net.Conn) net.Conn { wire = &tap{Conn: raw}; return wire })
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	if err := c.Write(ctx, []byte(`{"type":"req","id":"2","method":"chat.send","params":{"sessionKey":"main","message":"hi","idempotencyKey":"quick"}}`)); err != nil {
		t.Fatal(err)
	}
	other.event("chat", map[string]string{"runId": "quick", "state": "final"})
	if answer := next(ctx, t, c); answer.ID != "2" || answer.text("status") != "started" {
		t.Fatalf("first comes %s", answer.raw)
	}
	if wire.has(`"runId":"quick","seq"`) {
		t.Error("events came with the answer")
	}
	for { // reading on answers the ping
		if f := next(ctx, t, c); f.Event == "chat" && f.text("state") == "final" {
			return
		}
	}
}

// next is the next answer or event of a task.
func next(ctx context.Context, t *testing.T, c *protocol.Conn) *frame {
	t.Helper()
	for {
		data, err := c.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		f := &frame{raw: data}
		if err := json.Unmarshal(data, f); err != nil {
			t.Fatal(err)
		}
		if f.Type == "res" || f.text("runId") != "" {
			return f
		}
	}
}

// A client that never answers pings gets its events after a while.
func TestEventsDoNotWaitForever(t *testing.T) {
	p := gateway(t, ws.Limits{AckWait: 1})
	e := p.connect(3, fixed)
	e.must("chat.send", map[string]any{"sessionKey": "main", "message": "hi", "idempotencyKey": "a"})
	e.event("chat", map[string]string{"runId": "a", "state": "final"})
}

// The shutdown is announced before the tasks are waited for, with its reason; their
// later events are sent, and then the connections are closed.
func TestShutdownIsAnnouncedFirst(t *testing.T) {
	p := gateway(t, ws.Limits{})
	three, four := p.connect(3, fixed), p.connect(4, fixed)
	asked := four.ask("agent", map[string]any{"message": "wait gate", "idempotencyKey": "slow"})
	four.answer(asked, 1)
	four.event("agent", map[string]string{"runId": "slow", "stream": "assistant"})
	p.Announce("gateway stopping")
	for _, e := range []*peer{three, four} {
		if f := e.event("shutdown", nil); f.text("reason") != "gateway stopping" || f.get("restartExpectedMs") != nil {
			t.Errorf("%s", f.raw)
		}
	}
	close(p.hand.gate("gate"))
	if _, err := p.Sessions.Wait(t.Context(), allOf(), "slow"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	p.Shutdown(ctx)
	for _, e := range []*peer{three, four} {
		if code, _ := e.closed(); code != protocol.CloseRestart {
			t.Errorf("closed with %d", code)
		}
		frames, _, _ := e.so()
		if !slices.Contains(labels(frames, "slow"), "chat final") {
			t.Errorf("the task's end was not told:\n%s", e.transcript())
		}
	}
	if f := four.answer(asked, 2); f.text("status") != "ok" {
		t.Errorf("%s", f.raw)
	}
	if ctx.Err() != nil {
		t.Error("it had to be forced")
	}
}

// Rows tell what is going on in a session, while it does and not after.
func TestActiveRunsAreListed(t *testing.T) {
	p := gateway(t, ws.Limits{})
	e := p.connect(4, fixed)
	for _, id := range []string{"first", "second"} {
		e.must("agent", map[string]any{"message": "wait " + id, "idempotencyKey": id, "sessionKey": "main"})
	}
	e.must("sessions.patch", map[string]any{"key": "other", "label": "other"})
	for _, want := range [][]string{{"first", "second"}, {"second"}, {}} {
		if got := activeIn(t, e, "agent:main:main"); !slices.Equal(got, want) {
			t.Errorf("active: %v, want %v", got, want)
		}
		if got := activeIn(t, e, "agent:main:other"); len(got) > 0 {
			t.Errorf("active in another session: %v", got)
		}
		if len(want) > 0 {
			close(p.hand.gate(want[0]))
			e.event("chat", map[string]string{"runId": want[0], "state": "final"})
		}
	}
}

// activeIn are the tasks that a session's row names, in a list and alone.
func activeIn(t *testing.T, e *peer, key string) []string {
	t.Helper()
	ids := []string{}
	rows, _ := e.must("sessions.list", nil).get("sessions").([]any)
	rows = append(rows, e.must("sessions.describe", map[string]any{"key": key}).get("session"))
	for _, row := range rows {
		r, _ := row.(map[string]any)
		if r["key"] != key {
			continue
		}
		list, _ := r["activeRunIds"].([]any)
		if r["hasActiveRun"] != (len(list) > 0) {
			t.Errorf("hasActiveRun is %v with %v", r["hasActiveRun"], list)
		}
		ids = ids[:0]
		for _, id := range list {
			ids = append(ids, fmt.Sprint(id))
		}
	}
	return ids
}
