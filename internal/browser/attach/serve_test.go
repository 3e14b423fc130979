package attach_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/atoll-run/atoll/internal/browser/attach"
)

// pair returns both ends of a WebSocket.
func pair(t *testing.T) (near, far *websocket.Conn) {
	t.Helper()
	accepted := make(chan *websocket.Conn, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ws, err := websocket.Accept(w, r, nil); err == nil {
			accepted <- ws
			<-r.Context().Done()
		}
	}))
	t.Cleanup(server.Close)
	near, answer, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(server.URL, "http"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if answer.Body != nil {
		t.Cleanup(func() { _ = answer.Body.Close() })
	}
	far = <-accepted
	near.SetReadLimit(-1)
	far.SetReadLimit(-1)
	t.Cleanup(func() { _ = near.CloseNow(); _ = far.CloseNow() })
	return near, far
}

// connection is a served connection with its far ends, and why it ended.
type connection struct {
	program, browser *websocket.Conn
	ended            chan error
}

func serve(t *testing.T) *connection {
	t.Helper()
	c := &connection{ended: make(chan error, 1)}
	served := &attach.Connection{Filter: newFilter(), SendTime: 300 * time.Millisecond}
	served.Program, c.program = pair(t)
	served.Browser, c.browser = pair(t)
	go func() { c.ended <- served.Serve(t.Context()) }()
	return c
}

// wait returns why the connection ended.
func (c *connection) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-c.ended:
		return err
	case <-time.After(30 * time.Second):
		t.Fatal("the connection does not end")
		return nil
	}
}

// TestServe carries a call and its answer.
func TestServe(t *testing.T) {
	c := serve(t)
	write(t, c.program, `{"id":3,"method":"Page.enable"}`)
	if _, got, err := c.browser.Read(t.Context()); err != nil || !strings.Contains(string(got), `"Page.enable"`) {
		t.Fatal(string(got), err)
	}
	write(t, c.browser, `{"id":3,"result":{}}`)
	if _, got, err := c.program.Read(t.Context()); err != nil || string(got) != `{"id":3,"result":{}}` {
		t.Fatal(string(got), err)
	}
	_ = c.program.Close(websocket.StatusNormalClosure, "")
	_ = c.wait(t)
}

func write(t *testing.T, ws *websocket.Conn, text string) {
	t.Helper()
	if err := ws.Write(t.Context(), websocket.MessageText, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// TestCut checks that whoever breaks a bound ends its connection (attacks 4, 21).
func TestCut(t *testing.T) {
	for name, do := range map[string]func(*connection){
		"the program lies":         func(c *connection) { write(t, c.program, "garbage") },
		"the program sends bytes":  func(c *connection) { _ = c.program.Write(t.Context(), websocket.MessageBinary, []byte("{}")) },
		"the browser lies":         func(c *connection) { write(t, c.browser, `{"id":9,"result":{}}`) },
		"the browser goes":         func(c *connection) { _ = c.browser.CloseNow() },
		"a message without end":    func(c *connection) { endless(t.Context(), c.browser) },
		"the program does not end": func(c *connection) { endless(t.Context(), c.program) },
		"the program is slow":      func(c *connection) { flood(t.Context(), c.browser) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := serve(t)
			do(c)
			if err := c.wait(t); err == nil {
				t.Error("no reason")
			}
		})
	}
}

// endless writes one message until nobody reads it.
func endless(ctx context.Context, ws *websocket.Conn) {
	w, err := ws.Writer(ctx, websocket.MessageText)
	for err == nil {
		_, err = fmt.Fprint(w, strings.Repeat(" ", 1<<20))
	}
}

// flood writes events until nobody reads them.
func flood(ctx context.Context, ws *websocket.Conn) {
	event := []byte(`{"method":"Page.event","params":{"text":"` + strings.Repeat("x", 1<<16) + `"}}`)
	for ws.Write(ctx, websocket.MessageText, event) == nil {
	}
}
