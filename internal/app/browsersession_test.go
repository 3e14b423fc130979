package app_test

import (
	"context"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/browser"
	browsers "github.com/atoll-run/atoll/internal/browser/service"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/testkit/internettest"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// newBrowserUse returns an installation whose browsers reach shop.example, and a use of the
// browser of one session.
func newBrowserUse(t *testing.T) (*site, *browsers.Session) {
	t.Helper()
	s, a := newBrowsers(t, func(*site) {})
	return s, useBrowser(t, a, session("browser"))
}

func useBrowser(t *testing.T, a *app.App, who provide.Subject) *browsers.Session {
	t.Helper()
	used, err := a.Browsers.Use(who)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(used.Release)
	return used
}

// newBrowsers returns an installation whose browsers reach shop.example, with other
// settings besides.
func newBrowsers(t *testing.T, amend func(*site)) (*site, *app.App) {
	t.Helper()
	need.Time(t, "it starts a browser")
	need.Program(t, "chromium-headless-shell", "chromium-headless-shell")
	s := newSiteOn(t, noEngine)
	net, err := internettest.Start(shop{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = net.Close() })
	s.set("agents.defaults.sandbox.backend", "linux")
	s.set("agents.defaults.sandbox.egress.upstream", net.Proxy)
	s.set("agents.defaults.sandbox.egress.mode", "enforce")
	s.set("agents.defaults.sandbox.egress.allow", []any{"shop.example:80"})
	amend(s)
	a := s.open()
	removeAfter(t, a)
	return s, a
}

// removeAfter has all sandboxes of an installation removed when the test ends.
func removeAfter(t *testing.T, a *app.App) {
	t.Helper()
	t.Cleanup(func() {
		if err := a.Browsers.Close(); err != nil {
			t.Error(err)
		}
		ctx := context.WithoutCancel(t.Context())
		rows, err := a.Manager.Registry.List(ctx, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			if err := a.Manager.ForceRemove(ctx, row.ContainerName); err != nil {
				t.Error(err)
			}
		}
	})
}

func startBrowser(t *testing.T, r *browsers.Session) *browsers.Started {
	t.Helper()
	b, err := r.Browser(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestBrowserSession: a browser stays for further calls, is shared with another process
// of the host, and is started again after it has ended.
func TestBrowserSession(t *testing.T) {
	s, used := newBrowserUse(t)
	first := startBrowser(t, used)
	if _, err := first.NewPage(t.Context()); err != nil {
		t.Fatal(err)
	}
	if again := startBrowser(t, used); again.Browser != first.Browser || again.Number != 1 || !first.IsOwn() {
		t.Errorf("a second call: %+v", again)
	}
	t.Run("of another process", func(t *testing.T) {
		other, err := s.open().Browsers.Use(session("browser"))
		if err != nil {
			t.Fatal(err)
		}
		defer other.Release()
		b := startBrowser(t, other)
		if tabs, err := b.Tabs(t.Context()); err != nil || len(tabs) != 2 || b.IsOwn() {
			t.Errorf("%v, %v, own %v", tabs, err, b.IsOwn())
		}
		if err := other.Stop(); err != nil || first.Check(t.Context()) != nil {
			t.Errorf("the end of its use: %v, then %v", err, first.Check(t.Context()))
		}
	})
	t.Run("at most 20 tabs", func(t *testing.T) {
		for range browser.MaxTabs - 2 {
			if _, err := first.NewPage(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := first.NewPage(t.Context()); err == nil || !strings.Contains(err.Error(), "20 tabs") {
			t.Errorf("one more: %v", err)
		}
	})
	t.Run("after a crash", func(t *testing.T) {
		sh(t, first.Box, `kill -9 $(pidof chromium-headless-shell headless_shell chromium)`)
		<-first.Conn().Done()
		next := startBrowser(t, used)
		if next.Number != 2 || next.Why == nil || next.Check(t.Context()) != nil {
			t.Errorf("%+v", next)
		}
	})
}
