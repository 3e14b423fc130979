package app_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/sandbox/verify"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// TestBrowserVerify: the ring browser holds around a page that is open, and no other promise
// is broken in a browser's sandbox.
func TestBrowserVerify(t *testing.T) {
	s := newBrowserSite(t)
	s.visit(t, "/")
	ring := verifyBrowser(t, s)
	if ring.Status != verify.OK {
		t.Errorf("%+v", ring)
	}
}

// verifyBrowser returns the check of Chromium's own sandbox, and reports every gap.
func verifyBrowser(t *testing.T, s *browserSite) (ring verify.Check) {
	t.Helper()
	found, err := s.app.VerifyNamed(t.Context(), s.box.Name)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range found[0].Checks {
		if c.Status == verify.Gap {
			t.Errorf("gap: %+v", c)
		}
		if c.Ring == "browser" {
			ring = c
		}
	}
	return ring
}

// TestBrowserNoSandbox: without Chromium's own sandbox nobody inside may make namespaces,
// pages still open, and it is said.
func TestBrowserNoSandbox(t *testing.T) {
	need.Time(t, "it starts a browser of its own")
	s := newBrowserSiteWith(t, func(s *browserSite) { s.set("agents.defaults.sandbox.browser.dangerouslyNoSandbox", true) })
	if state, _ := s.visit(t, "/"); state.Title != "Shop" {
		t.Errorf("%+v", state)
	}
	if out := sh(t, s.box, `unshare --user true 2>&1 || echo refused`); !strings.Contains(out, "refused") {
		t.Errorf("a user namespace: %s", out)
	}
	if ring := verifyBrowser(t, s); ring.Status != verify.Note || !strings.Contains(ring.Found, "one wall") {
		t.Errorf("%+v", ring)
	}
	rows, _, err := s.app.List(t.Context(), 0)
	if err != nil || len(rows) != 1 || !strings.Contains(rows[0].Problem, "one wall") {
		t.Errorf("%+v, %v", rows, err)
	}
}

// TestAttackBrowser03_OtherBoxes: a browser's process sees no workspace, no other profile
// and no other account's browser.
func TestAttackBrowser03_OtherBoxes(t *testing.T) {
	s := newBrowserSite(t)
	other, err := s.app.ProvideBrowser(t.Context(), provide.Subject{SessionKey: s.box.Plan.Session.Key, Account: "other"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		other.Release()
		if err := s.app.Manager.ForceRemove(context.WithoutCancel(t.Context()), other.Name); err != nil {
			t.Error(err)
		}
	}()
	if other.Name == s.box.Name {
		t.Fatal("two accounts share a browser")
	}
	sh(t, s.box, "echo cookie > /tmp/left")
	if out := sh(t, other, "cat /tmp/left /tmp/profile/* 2>&1 | grep cookie; ls /workspace /agent 2>/dev/null; true"); out != "" {
		t.Errorf("the other account sees %q", out)
	}
	for _, m := range s.box.Plan.Spec.Mounts {
		t.Errorf("mounted: %+v", m)
	}
}

// TestAttackBrowser07_Proxy: what a process of the browser says to the proxy by itself is
// judged as a page's request is.
func TestAttackBrowser07_Proxy(t *testing.T) {
	s := newBrowserSite(t)
	const ask = `python3 - <<'END'
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
	var out bytes.Buffer
	if _, err := s.box.Machine.Exec(t.Context(), &machine.Command{Argv: []string{"/bin/sh", "-c", ask}, Grant: s.way.GrantID(), Stdout: &out, Timeout: time.Minute}); err != nil {
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

// TestAttackBrowser14_LeftProfile: a browser that was killed leaves neither a lock nor
// cookies to the next one of its sandbox.
func TestAttackBrowser14_LeftProfile(t *testing.T) {
	s := newBrowserSite(t)
	sh(t, s.box, `pkill -KILL chromium; mkdir -p /tmp/profile && ln -sfn elsewhere-1 /tmp/profile/SingletonLock && echo old > /tmp/profile/Left`)
	s.start(t)
	if state, _ := s.visit(t, "/"); state.Title != "Shop" {
		t.Errorf("%+v", state)
	}
	if out := sh(t, s.box, `ls /tmp/profile/Left /tmp/profile/SingletonLock 2>/dev/null; readlink /tmp/profile/SingletonLock | grep elsewhere; true`); strings.Contains(out, "Left") || strings.Contains(out, "elsewhere") {
		t.Errorf("left: %s", out)
	}
}
