package app_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	browsers "github.com/atoll-run/atoll/internal/browser/service"
	egress "github.com/atoll-run/atoll/internal/egress/service"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// attackOtherBoxes (3): a browser's process sees no workspace, no other profile and no
// other account's browser.
func attackOtherBoxes(t *testing.T, s *attackSite) {
	own := s.started(t).Box
	used := useBrowser(t, s.app, provide.Subject{SessionKey: s.who.SessionKey, Account: "other"})
	other := startBrowser(t, used).Box
	if other.Name == own.Name {
		t.Fatal("two accounts share a browser")
	}
	sh(t, own, "echo cookie > /tmp/left")
	if out := sh(t, other, "cat /tmp/left 2>/dev/null; grep -rl cookie /tmp/left* 2>/dev/null; ls /workspace /agent 2>/dev/null; true"); out != "" {
		t.Errorf("the other account sees %q", out)
	}
	for _, m := range own.Plan.Spec.Mounts {
		t.Errorf("mounted: %+v", m)
	}
	if err := used.Stop(); err != nil {
		t.Error(err)
	}
}

// attackAround (5): a page reaches neither the browser's control port nor the proxy, no
// private address (6) and no name without a rule.
func attackAround(t *testing.T, s *attackSite) {
	page := s.opened(t, "http://shop.example/around")
	var text string
	awaitBrowser(t, func() bool {
		var err error
		if text, _, err = page.Snapshot(t.Context()); err != nil {
			t.Fatal(err)
		}
		return strings.Contains(text, "all done")
	})
	if strings.Contains(text, " 200") {
		t.Errorf("something answered:\n%s", text)
	}
	if state, err := page.State(t.Context()); err != nil || state.Title != "Around" {
		t.Errorf("%+v, %v", state, err)
	}
	if denied := strings.Join(s.used.Denials(), "\n"); !strings.Contains(denied, "other.example:80 denied") {
		t.Errorf("denials: %s", denied)
	}
	s.reachedOnly(t)
}

// reachedOnly wants that nothing but the sites of the test was reached.
func (s *attackSite) reachedOnly(t *testing.T) {
	t.Helper()
	allowed := []string{"shop.example:80", "shop.example:443", "bank.example:80", "frames.example:80"}
	if asked := s.net.Asked(); slices.ContainsFunc(asked, func(to string) bool { return !slices.Contains(allowed, to) }) {
		t.Errorf("left the host: %q", asked)
	}
}

// attackNames (6): a name whose address is this machine's or a private one is refused
// after it was resolved, although a rule allows it.
func attackNames(t *testing.T, s *attackSite) {
	used := useBrowser(t, s.app, provide.Subject{SessionKey: "agent:direct:names"})
	page, err := startBrowser(t, used).NewPage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	own := ownName(t)
	if _, err := page.Navigate(t.Context(), "https://"+own+"/"); err == nil {
		t.Error("this machine was reached")
	}
	if denied := strings.Join(used.Denials(), "\n"); !strings.Contains(denied, own+":443 denied") || strings.Contains(denied, "no rule allows") {
		t.Error(denied)
	}
	if err := used.Stop(); err != nil {
		t.Error(err)
	}
}

// ownName returns the name of this machine, which has an address.
func ownName(t *testing.T) string {
	t.Helper()
	own, err := os.Hostname()
	if err == nil {
		_, err = net.DefaultResolver.LookupHost(t.Context(), own)
	}
	if err != nil {
		need.Missing(t, fmt.Errorf("the name of this machine has no address: %w", err))
	}
	return own
}

// proxyAttempts asks the proxy of egress in ways that no browser does.
const proxyAttempts = `python3 - <<'END'
import socket
def ask(text):
    c = socket.create_connection(("127.0.0.1", 3128), 5)
    c.settimeout(5)
    try:
        c.sendall(text)
        return c.recv(64).split(b"\r\n")[0].decode("latin1") or "closed"
    except OSError as e:
        return "closed"
for name, text in {
    "good": b"GET http://shop.example/ HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n",
    "ssh": b"CONNECT shop.example:22 HTTP/1.1\r\nHost: shop.example:22\r\n\r\n",
    "mail": b"CONNECT shop.example:25 HTTP/1.1\r\nHost: shop.example:25\r\n\r\n",
    "odd address": b"CONNECT 0x7f000001:9222 HTTP/1.1\r\nHost: 0x7f000001:9222\r\n\r\n",
    "other host": b"GET http://shop.example/ HTTP/1.1\r\nHost: other.example\r\nConnection: close\r\n\r\n",
    "two lengths": b"POST http://shop.example/ HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
    "length and chunks": b"POST http://shop.example/ HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "user": b"GET http://ann@shop.example/ HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n",
    "long": b"GET http://shop.example/ HTTP/1.1\r\nHost: shop.example\r\nX: " + b"a" * (1 << 17) + b"\r\n\r\n",
}.items():
    print(name + "=" + ask(text))
END`

// attackProxy (7): what a process of the browser says to the proxy by itself is judged as
// a page's request is.
func attackProxy(t *testing.T, s *attackSite) {
	box := s.started(t).Box
	way, err := s.app.Egress.Open(t.Context(), box.Handle, box.Plan, egress.Options{Config: browsers.EgressOf})
	if err != nil {
		t.Fatal(err)
	}
	defer way.Close()
	var out bytes.Buffer
	if _, err := box.Machine.Exec(t.Context(), &machine.Command{Argv: []string{"/bin/sh", "-c", proxyAttempts}, Grant: way.GrantID(), Stdout: &out, Timeout: time.Minute}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 9 {
		t.Fatalf("%q", out.String())
	}
	for _, line := range lines {
		name, answer, _ := strings.Cut(line, "=")
		if isGood := strings.Contains(answer, " 200 "); isGood != (name == "good") {
			t.Errorf("%s: %s", name, answer)
		}
	}
}
