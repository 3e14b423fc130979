package app_test

import (
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/sandbox/verify"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// TestBrowserVerify: the ring browser holds around a page that is open, and no other promise
// is broken in a browser's sandbox.
func TestBrowserVerify(t *testing.T) {
	s := newBrowserSite(t)
	s.visit(t, "/")
	ring := verifyBrowser(t, s.app, s.box.Name)
	if ring.Status != verify.OK {
		t.Errorf("%+v", ring)
	}
}

// verifyBrowser returns the check of Chromium's own sandbox, and reports every gap.
func verifyBrowser(t *testing.T, a *app.App, name string) (ring verify.Check) {
	t.Helper()
	found, err := a.VerifyNamed(t.Context(), name)
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
	if ring := verifyBrowser(t, s.app, s.box.Name); ring.Status != verify.Note || !strings.Contains(ring.Found, "one wall") {
		t.Errorf("%+v", ring)
	}
	rows, _, err := s.app.List(t.Context(), 0)
	if err != nil || len(rows) != 1 || !strings.Contains(rows[0].Problem, "one wall") {
		t.Errorf("%+v, %v", rows, err)
	}
}
