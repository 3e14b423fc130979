package inspect_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/egress/inspect"
	"github.com/atoll-run/atoll/internal/egress/rule"
)

// shout agrees to another protocol and repeats what it gets in capitals.
func shout(out http.ResponseWriter, _ *http.Request) {
	conn, buffered, err := out.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-Websocket-Accept: x\r\nAlt-Svc: h3=\"evil:443\"\r\n\r\n")
	for {
		line, err := buffered.ReadString('\n')
		if err != nil {
			return
		}
		fmt.Fprint(conn, strings.ToUpper(line))
	}
}

func upgradeRequest(extra ...string) string {
	return lines(append(append([]string{"GET /chat HTTP/1.1", "Host: " + site, "Connection: Upgrade", "Upgrade: websocket"}, extra...), "")...)
}

// TestAttack12_Upgrade: another protocol is refused unless the rule allows it.
func TestAttack12_Upgrade(t *testing.T) {
	w := newWorld(t, http.HandlerFunc(shout), github())
	out := w.raw(upgradeRequest())
	if r := w.result(0); r == nil || r.Kind != inspect.Denied || !strings.Contains(r.Hint, "webSocket: true") || !strings.HasPrefix(out, "HTTP/1.1 403") {
		t.Errorf("%v %s", r, out)
	}
	if len(w.recorded) != 0 {
		t.Errorf("sent: %q", w.recorded)
	}
	w.change(func() {
		w.decide = func(string, string) rule.Decision {
			return rule.Decision{Allow: true, WebSocket: true, Secrets: []string{"github"}}
		}
	})
	out = w.raw(upgradeRequest("Authorization: Bearer " + w.placeholder()))
	if r := w.result(1); r == nil || r.Kind != inspect.LeakAttempt || !strings.HasPrefix(out, "HTTP/1.1 403") {
		t.Errorf("%v %s", r, out)
	}
	out = w.raw(strings.Replace(upgradeRequest(), "websocket", "h2c", 1))
	if r := w.result(2); r == nil || r.Kind != inspect.Protocol || !strings.HasPrefix(out, "HTTP/1.1 426") {
		t.Errorf("%v %s", r, out)
	}
	out = w.raw(lines("POST /chat HTTP/1.1", "Host: "+site, "Connection: Upgrade", "Upgrade: websocket", "Content-Length: 2", "", "ab"))
	if r := w.result(3); r == nil || r.Kind != inspect.Protocol || !strings.HasPrefix(out, "HTTP/1.1 400") {
		t.Errorf("%v %s", r, out)
	}
}

// TestAttack12_AllowedUpgrade relays bytes both ways, those too that came with the
// request.
func TestAttack12_AllowedUpgrade(t *testing.T) {
	w := newWorld(t, http.HandlerFunc(shout))
	w.change(func() {
		w.decide = func(string, string) rule.Decision { return rule.Decision{Allow: true, WebSocket: true} }
	})
	conn := w.conn()
	_, err := io.WriteString(conn, upgradeRequest()+"early\n")
	check(t, err)
	reader := bufio.NewReader(conn)
	answer, err := http.ReadResponse(reader, nil)
	check(t, err)
	if answer.StatusCode != 101 || answer.Header.Get("Sec-Websocket-Accept") != "x" || answer.Header.Get("Alt-Svc") != "" {
		t.Errorf("%d %v", answer.StatusCode, answer.Header)
	}
	for _, text := range []string{"", "late\n"} {
		_, err := io.WriteString(conn, text)
		check(t, err)
		line, err := reader.ReadString('\n')
		check(t, err)
		if line != "EARLY\n" && line != "LATE\n" {
			t.Errorf("%q", line)
		}
	}
	check(t, conn.Close())
	if r := w.result(0); r != nil {
		t.Error(r)
	}
}

// TestAttack12_RefusedByTheServer hands on a server's refusal.
func TestAttack12_RefusedByTheServer(t *testing.T) {
	w := newWorld(t, http.HandlerFunc(echo))
	w.change(func() {
		w.decide = func(string, string) rule.Decision { return rule.Decision{Allow: true, WebSocket: true} }
	})
	if out := w.raw(upgradeRequest()); !strings.HasPrefix(out, "HTTP/1.1 200") || !strings.Contains(out, "Connection: close") {
		t.Error(out)
	}
}
