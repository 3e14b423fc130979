package app_test

import (
	"bufio"
	"context"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/browser"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/testkit/browserimage"
	"github.com/atoll-run/atoll/internal/testkit/enginetest"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// TestBrowserOnDocker: the image of browsers has both programs, a browser works in it with
// its own sandbox inside ours, and a window has a screen that the wire reaches.
func TestBrowserOnDocker(t *testing.T) {
	need.Time(t, "it builds an image with Chromium")
	s := &browserSite{site: newSiteOn(t, enginetest.Docker(t))}
	s.serveShop(t)
	s.app = s.open()
	s.refusesImage(t, "atoll-test-browser:none", "Sandbox browser image not found: atoll-test-browser:none. Build it with scripts/sandbox-browser-setup.sh.")
	s.refusesImage(t, enginetest.Image, "is stale or incompatible (contract=missing, expected=2026-05-12-cdp-relay-auth)")
	s.set("agents.defaults.sandbox.browser.image", browserimage.Build(t, s.app))
	s.set("agents.defaults.sandbox.browser.containerPrefix", s.tag+"-browser-")
	s.app = s.open()
	s.provide(t)
	s.start(t)
	if state, _ := s.visit(t, "/"); state.Title != "Shop" {
		t.Errorf("%+v", state)
	}
	t.Run("a window", func(t *testing.T) { testWindow(t, s) })
	t.Run("certificates of a company", func(t *testing.T) { testCompanyCA(t, s) })
}

// refusesImage wants that no browser is made of an image, and the command that builds one.
func (s *browserSite) refusesImage(t *testing.T, image, why string) {
	t.Helper()
	s.set("agents.defaults.sandbox.browser.image", image)
	_, err := s.open().ProvideBrowser(t.Context(), session("browser"))
	if err == nil || !strings.Contains(err.Error(), why) || !strings.Contains(errhint.Of(err), "atoll images build browser") {
		t.Errorf("%s: %v (%s)", image, err, errhint.Of(err))
	}
}

// TestBrowserImageMissing: without an engine an image that was not built is refused in the
// same words.
func TestBrowserImageMissing(t *testing.T) {
	s := &browserSite{site: newSiteOn(t, noEngine)}
	s.set("agents.defaults.sandbox.backend", "linux")
	s.refusesImage(t, "own-browser:1", "Sandbox browser image not found: own-browser:1. Build it with scripts/sandbox-browser-setup.sh.")
}

// testWindow starts the browser again with a window, and asks its screen who it is.
func testWindow(t *testing.T, s *browserSite) {
	if err := s.browser.Close(); err != nil {
		t.Fatal(err)
	}
	keys := &s.box.Plan.Agent.Sandbox.Browser
	keys.Headless = false
	s.start(t)
	if !s.browser.Windowed() {
		t.Error("it has no window")
	}
	if state, _ := s.visit(t, "/"); state.Title != "Shop" {
		t.Errorf("%+v", state)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, err := s.box.Machine.Dial(ctx, "tcp", browser.ScreenPort)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if greeting, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.HasPrefix(greeting, "RFB 003.") {
		t.Errorf("the screen says %q, %v", greeting, err)
	}
}
