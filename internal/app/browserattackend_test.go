package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/browser"
	"github.com/atoll-run/atoll/internal/browser/devtools"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// signalBrowsers returns a script that sends a signal to all processes of Chromium.
func signalBrowsers(signal string) string {
	return `for p in /proc/[0-9]*; do case "$(cat $p/comm 2>/dev/null)" in chrom*|headless*) kill -` + signal + ` ${p#/proc/} 2>/dev/null;; esac; done; true`
}

// attackHung (15): a browser that is stopped answers within the limit with an error, and
// the next call has a new one.
func attackHung(t *testing.T, s *attackSite) {
	b := s.started(t)
	sh(t, b.Box, signalBrowsers("STOP"))
	err := b.Check(t.Context())
	if err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Fatal(err)
	}
	if err := s.used.Stop(); err != nil {
		t.Fatal(err)
	}
	if again := s.started(t); again.Check(t.Context()) != nil || again.Number != b.Number+1 {
		t.Errorf("%+v", again)
	}
}

// attackLeftProfile (14): a browser that was killed leaves neither a lock nor cookies to
// the next one of its sandbox.
func attackLeftProfile(t *testing.T, s *attackSite) {
	b := s.started(t)
	sh(t, b.Box, signalBrowsers("KILL")+`; mkdir -p /tmp/profile && ln -sfn elsewhere-1 /tmp/profile/SingletonLock && echo old > /tmp/profile/Left`)
	<-b.Conn().Done()
	if title := s.evaluated(t, "http://shop.example/", "document.title"); !strings.Contains(title, "Shop") {
		t.Error(title)
	}
	if out := sh(t, b.Box, `ls /tmp/profile/Left 2>/dev/null; readlink /tmp/profile/SingletonLock | grep elsewhere; true`); out != "" {
		t.Errorf("left: %s", out)
	}
}

// attackKilled (14): after the process that started a browser was killed, the next one has
// a browser that works, and no second one runs.
func attackKilled(t *testing.T, s *attackSite) {
	who := provide.Subject{SessionKey: "agent:main:killed"}
	s.die(s.process(order{Session: who.SessionKey, Browser: true}))
	used := useBrowser(t, s.app, who)
	if said := evaluateAt(t, used, "document.title"); !strings.Contains(said, "Shop") {
		t.Error(said)
	}
	if n := sh(t, startBrowser(t, used).Box, runningBrowsers); n != "1" {
		t.Errorf("%s browsers run", n)
	}
	if err := used.Stop(); err != nil {
		t.Error(err)
	}
}

// runningBrowsers counts the processes of Chromium that are a browser, not a part of one.
const runningBrowsers = `n=0; for p in /proc/[0-9]*; do case "$(cat $p/cmdline 2>/dev/null | tr '\0' ' ')" in *"--type="*) ;; *"--remote-debugging-port="*"about:blank"*) n=$((n+1));; esac; done; echo $n`

// TestAttackBrowser14_Killed: at whatever step the process that starts a browser is killed,
// the next one has a browser that works, in the only sandbox that there is.
func TestAttackBrowser14_Killed(t *testing.T) {
	s, a := newBrowsers(t, func(*site) {})
	for _, step := range []string{"after intent", "after create", "after start", "before ready"} {
		s.die(s.process(order{Session: session("killed").SessionKey, Browser: true, DieAt: step}))
		used := useBrowser(t, a, session("killed"))
		if said := evaluateAt(t, used, "document.title"); !strings.Contains(said, "Shop") {
			t.Errorf("after %q: %s", step, said)
		}
		b := startBrowser(t, used)
		if n := sh(t, b.Box, runningBrowsers); n != "1" {
			t.Errorf("after %q: %s browsers run", step, n)
		}
		if rows := s.rows(a); len(rows) != 1 {
			t.Errorf("after %q: %d sandboxes", step, len(rows))
		}
		if err := used.Stop(); err != nil {
			t.Fatal(err)
		}
		if err := a.Manager.ForceRemove(t.Context(), b.Box.Name); err != nil {
			t.Fatal(err)
		}
	}
}

// hostileBrowser takes the place of Chromium on its control port. Its first argument says
// how it answers the first call.
const hostileBrowser = `exec python3 -c '
import base64, hashlib, http.server, json, struct, sys
def frame(data, op=1, last=True):
    n = len(data)
    size = bytes([n]) if n < 126 else b"\x7e" + struct.pack(">H", n) if n < 65536 else b"\x7f" + struct.pack(">Q", n)
    return bytes([op | (128 if last else 0)]) + size + data
def received(f):
    n = f.read(2)[1] & 127
    n = struct.unpack(">H", f.read(2))[0] if n == 126 else struct.unpack(">Q", f.read(8))[0] if n == 127 else n
    key, data = f.read(4), f.read(n)
    return json.loads(bytes(b ^ key[i % 4] for i, b in enumerate(data)))
event = frame(json.dumps({"method": "Page.event", "params": {"x": "y" * 200}}).encode())
def forever(f, data):
    while True: f.write(data)
def endless(f, call):
    f.write(frame(b"{", 1, False)); forever(f, frame(b" " * 65536, 0, False))
def large(f, call): f.write(frame(b" " * ((32 << 20) + 1)))
def zeros(f, call): forever(f, frame(b"\0" * 1000))
def deep(f, call): f.write(frame(b"{\"id\":1,\"result\":" + b"[" * 1000000 + b"]" * 1000000 + b"}"))
def events(f, call): forever(f, event * 500)
def answers(f, call):
    for n in range(2000): f.write(frame(json.dumps({"id": 9000 + n, "result": {"product": "lie"}}).encode()))
    for session in ("", "", "stranger"):
        f.write(frame(json.dumps({"id": call["id"], "sessionId": session, "result": {"product": "true\x1b[2J\u202e" + "x" * 5000}}).encode()))
    forever(f, event)
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.close_connection = True
        if self.path == "/json/version":
            text = json.dumps({"webSocketDebuggerUrl": "ws://127.0.0.1:9222/devtools/browser/x"}).encode()
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(text) + text)
            return
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.wfile.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + base64.b64encode(hashlib.sha1(key.encode()).digest()) + b"\r\n\r\n")
        globals()[sys.argv[1]](self.wfile, received(self.rfile))
    def log_message(self, *a): pass
http.server.ThreadingHTTPServer(("127.0.0.1", 9222), Answer).serve_forever()
' `

// attackFloods (4): a process that has taken the browser's place sends what no browser
// does. It gets its connection closed or is not heard, within bounds.
func attackFloods(t *testing.T, s *attackSite) {
	box := s.started(t).Box
	sh(t, box, signalBrowsers("KILL"))
	awaitBrowser(t, func() bool { _, err := browser.Attach(t.Context(), box.Machine, browser.Options{}); return err != nil })
	for _, how := range []string{"endless", "large", "zeros", "deep", "events", "answers"} {
		id, err := box.Machine.Start(t.Context(), &machine.Command{Argv: []string{"/bin/sh", "-c", hostileBrowser + how}})
		if err != nil {
			t.Fatal(err)
		}
		attackFlood(t, box, how)
		if err := box.Machine.End(t.Context(), id, 0); err != nil {
			t.Error(err)
		}
	}
	if title := s.evaluated(t, "http://shop.example/", "document.title"); !strings.Contains(title, "Shop") {
		t.Error("afterwards:", title)
	}
}

// attackFlood makes a call to a hostile browser.
func attackFlood(t *testing.T, box *provide.ReadySandbox, how string) {
	t.Helper()
	var b *browser.Browser
	awaitBrowser(t, func() (attached bool) {
		var err error
		b, err = browser.Attach(t.Context(), box.Machine, browser.Options{})
		return err == nil
	})
	defer b.Close()
	kept, cancel := b.Conn().Session("").Subscribe("Page.event")
	defer cancel()
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	if how == "events" {
		stop()
		ctx, stop = context.WithTimeout(t.Context(), time.Second)
	}
	defer stop()
	var answer struct {
		Product json.RawMessage `json:"product"`
	}
	err := b.Conn().Session("").Call(ctx, "Browser.getVersion", struct{}{}, &answer)
	switch how {
	case "events":
		if !errors.Is(err, context.DeadlineExceeded) || len(kept) > 32 {
			t.Errorf("events: %v, %d are kept", err, len(kept))
		}
	case "answers":
		if err != nil || !strings.HasPrefix(string(answer.Product), `"true`) {
			t.Errorf("answers: %v, %.100s", err, answer.Product)
		}
	default:
		if !errors.Is(err, devtools.ErrClosed) {
			t.Errorf("%s: %v", how, err)
		}
	}
}
