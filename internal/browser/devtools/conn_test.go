package devtools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/atoll-run/atoll/internal/browser/devtools"
)

// call is what the fake browser receives.
type call struct {
	ID        int64  `json:"id"`
	SessionID string `json:"sessionId"`
	Method    string `json:"method"`
}

// serve plays a browser that answers each call with what answer returns.
func serve(t *testing.T, answer func(call) []string) *devtools.Conn {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer ws.CloseNow()
		for {
			_, data, err := ws.Read(r.Context())
			var c call
			if err != nil || json.Unmarshal(data, &c) != nil {
				return
			}
			for _, text := range answer(c) {
				if ws.Write(r.Context(), websocket.MessageText, []byte(text)) != nil {
					return
				}
			}
		}
	}))
	t.Cleanup(server.Close)
	conn, err := devtools.Dial(t.Context(), "ws://127.0.0.1/", func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", server.Listener.Addr().String())
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func result(c call, text string) string {
	return fmt.Sprintf(`{"id":%d,"sessionId":%q,"result":%s}`, c.ID, c.SessionID, text)
}

// TestCalls checks that an answer is matched to its call by id, and that one without a
// pending call, or with the id of another session, is not.
func TestCalls(t *testing.T) {
	conn := serve(t, func(c call) []string {
		switch c.Method {
		case "Fail.now":
			return []string{fmt.Sprintf(`{"id":%d,"sessionId":%q,"error":{"code":-32000,"message":"no"}}`, c.ID, c.SessionID)}
		case "Other.session":
			return []string{fmt.Sprintf(`{"id":%d,"sessionId":"stranger","result":{}}`, c.ID)}
		}
		return []string{`{"id":999999,"result":{"n":1}}`, result(c, `{"n":7}`), result(c, `{"n":8}`)}
	})
	var got struct {
		N int `json:"n"`
	}
	for range 3 {
		if err := conn.Session("s").Call(t.Context(), "Some.call", struct{}{}, &got); err != nil || got.N != 7 {
			t.Fatal(got.N, err)
		}
	}
	err := conn.Session("s").Call(t.Context(), "Fail.now", struct{}{}, &got)
	if failed, ok := errors.AsType[*devtools.CallError](err); !ok || failed.Code != -32000 {
		t.Error(err)
	}
	if err := conn.Session("s").Call(t.Context(), "Other.session", struct{}{}, &got); err == nil {
		t.Error("an answer for another session counted")
	}
}

// TestEventsAreBounded checks that a subscription that is not read keeps its newest
// events, drops large ones, and has none of another session.
func TestEventsAreBounded(t *testing.T) {
	conn := serve(t, func(c call) (all []string) {
		for i := range 1000 {
			all = append(all, fmt.Sprintf(`{"sessionId":"s","method":"A.b","params":{"n":%d}}`, i), `{"sessionId":"x","method":"A.b","params":{}}`)
		}
		large := `{"sessionId":"s","method":"A.b","params":{"n":"` + strings.Repeat("x", 1<<20) + `"}}`
		return append(all, large, result(c, "{}"))
	})
	events, cancel := conn.Session("s").Subscribe("A.b")
	defer cancel()
	if err := conn.Session("s").Call(t.Context(), "Go.on", struct{}{}, &struct{}{}); err != nil {
		t.Fatal(err)
	}
	if len(events) != cap(events) || len(events) > 32 {
		t.Errorf("%d events wait", len(events))
	}
	if first := string(<-events); first != `{"n":968}` {
		t.Errorf("the oldest is %s", first)
	}
}

// TestAConnectionThatIsOver: garbage, messages without end and a browser that goes end
// every call with the reason.
func TestAConnectionThatIsOver(t *testing.T) {
	for name, text := range map[string]string{"garbage": "garbage", "too large": `{"method":"` + strings.Repeat("x", devtools.MaxMessage) + `"}`} {
		t.Run(name, func(t *testing.T) {
			conn := serve(t, func(call) []string { return []string{text} })
			events, cancel := conn.Session("").Subscribe("A.b")
			defer cancel()
			ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
			defer stop()
			for range 2 {
				if err := conn.Session("").Call(ctx, "A.b", struct{}{}, &struct{}{}); !errors.Is(err, devtools.ErrClosed) {
					t.Error(err)
				}
			}
			if _, ok := <-events; ok {
				t.Error("an event arrived")
			}
		})
	}
}

// TestCallsAreBounded: a browser that does not answer holds a bounded number of calls,
// each for its caller's time.
func TestCallsAreBounded(t *testing.T) {
	conn := serve(t, func(call) []string { return nil })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 256)
	for range 256 {
		go func() {
			err := devtools.ErrBusy
			for errors.Is(err, devtools.ErrBusy) { // while the one below has the place
				err = conn.Session("").Call(ctx, "A.b", struct{}{}, &struct{}{})
			}
			ended <- err
		}()
	}
	deadline := time.Now().Add(30 * time.Second)
	for {
		short, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
		err := conn.Session("").Call(short, "A.b", struct{}{}, &struct{}{})
		stop()
		if errors.Is(err, devtools.ErrBusy) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	cancel()
	for range 256 {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

// TestCallsEnd checks that a call ends though the browser does not answer and its caller
// has no deadline.
func TestCallsEnd(t *testing.T) {
	conn := serve(t, func(call) []string { return nil })
	conn.CallTimeout = 20 * time.Millisecond
	if err := conn.Session("").Call(t.Context(), "A.b", struct{}{}, &struct{}{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// TestCallersLeave checks that the connection stays open when the contexts of callers end,
// also while their calls are being sent.
func TestCallersLeave(t *testing.T) {
	conn := serve(t, func(c call) []string { return []string{result(c, "{}")} })
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for n := range 20 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(4*i*n)*time.Microsecond)
				_ = conn.Session("").Call(ctx, "A.b", map[string]string{"text": strings.Repeat("x", 1<<14)}, &struct{}{}) // it ends with its time
				cancel()
			}
		})
	}
	all.Wait()
	if err := conn.Session("").Call(t.Context(), "A.b", struct{}{}, &struct{}{}); err != nil {
		t.Error(err)
	}
}
