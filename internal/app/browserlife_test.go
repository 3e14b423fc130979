package app_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/app"
	browsers "github.com/atoll-run/atoll/internal/browser/service"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// keptCookie sets a cookie that lasts, and something in the storage of the page.
const keptCookie = `document.cookie = "who=ann; max-age=3600"; localStorage.setItem("who", "ann"); document.cookie + localStorage.getItem("who")`

// evaluateAt opens the shop in a new tab of a session's browser and returns what a script
// says there.
func evaluateAt(t *testing.T, r *browsers.Session, script string) string {
	t.Helper()
	page, err := startBrowser(t, r).NewPage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer page.Leave()
	if _, err := page.Navigate(t.Context(), "http://shop.example/"); err != nil {
		t.Fatal(err)
	}
	said, err := page.Evaluate(t.Context(), script, 1000)
	if err != nil {
		t.Fatal(err)
	}
	return said
}

const storedCookie = `document.cookie + "|" + localStorage.getItem("who")`

// TestBrowserProfile: a profile that is kept belongs to one account and one scope, lasts
// until its sandbox is recreated, and a lock that a killed browser left does not matter.
func TestBrowserProfile(t *testing.T) {
	s, a := newBrowsers(t, func(s *site) {
		s.set("agents.defaults.sandbox.scope", "session")
		s.set("agents.defaults.sandbox.browser.profile", "session")
	})
	who := session("kept")
	used := useBrowser(t, a, who)
	if said := evaluateAt(t, used, keptCookie); !strings.Contains(said, "who=ann") {
		t.Fatal(said)
	}
	first := startBrowser(t, used)
	dir := plan.ProfileDir(a.Paths.AtollState, first.Box.Plan.ScopeKey)
	checkProfileDir(t, dir)
	if err := used.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("elsewhere-1", filepath.Join(dir, "SingletonLock")); err != nil {
		t.Fatal(err)
	}
	t.Run("kept", func(t *testing.T) {
		if said := evaluateAt(t, used, storedCookie); !strings.Contains(said, "who=ann|ann") {
			t.Error(said)
		}
	})
	t.Run("not another account's or session's", func(t *testing.T) {
		for _, other := range []provide.Subject{{SessionKey: who.SessionKey, Account: "other"}, session("other")} {
			if said := evaluateAt(t, useBrowser(t, a, other), storedCookie); strings.Contains(said, "ann") {
				t.Errorf("%+v: %s", other, said)
			}
		}
	})
	t.Run("gone with its sandbox", func(t *testing.T) { testProfileEnds(t, s, a, used, dir) })
}

// checkProfileDir wants a directory that only the browser's user can enter.
func checkProfileDir(t *testing.T, dir string) {
	t.Helper()
	info, err := os.Lstat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if owner := info.Sys().(*syscall.Stat_t).Uid; info.Mode().Perm() != 0o700 || os.Getuid() == 0 && owner != 1000 {
		t.Errorf("%s of user %d", info.Mode(), owner)
	}
}

func testProfileEnds(t *testing.T, s *site, a *app.App, used *browsers.Session, dir string) {
	if err := used.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Prune(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(dir); err != nil {
		t.Errorf("prune took the profile of a browser that has a sandbox: %v", err)
	}
	for _, row := range s.rows(a) {
		if r := a.Recreate(t.Context(), row, false); r.Err != nil && strings.Contains(row.SessionKey, "kept") && row.Account == "" {
			t.Error(r.Err)
		}
	}
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the profile is left: %v", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "Default"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Prune(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("prune leaves a profile that no sandbox uses: %v", err)
	}
}

// TestBrowserRest checks that an idle browser's processes are stopped by SIGSTOP, and
// continued by the next call.
func TestBrowserRest(t *testing.T) {
	_, a := newBrowsers(t, func(s *site) { s.set("agents.defaults.sandbox.browser.tabs", 2) })
	a.Browsers.FreezeAfter, a.Browsers.Idle = 300*time.Millisecond, time.Hour
	used, err := a.Browsers.Use(session("browser"))
	if err != nil {
		t.Fatal(err)
	}
	first := startBrowser(t, used)
	page, err := first.NewPage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.NewPage(t.Context()); err == nil || !strings.Contains(err.Error(), "2 tabs are open") {
		t.Errorf("a third tab: %v", err)
	}
	used.Release()
	awaitBrowser(t, used.Frozen)
	if out := sh(t, first.Box, stoppedProcesses); out != "0" {
		t.Errorf("frozen, and %s processes of the browser are not", out)
	}
	again := useBrowser(t, a, session("browser"))
	if next := startBrowser(t, again); next.Browser != first.Browser || again.Frozen() {
		t.Errorf("%+v", next)
	}
	if state, err := page.Navigate(t.Context(), "http://shop.example/"); err != nil || state.Title != "Shop" {
		t.Errorf("after it was frozen: %+v, %v", state, err)
	}
}

// TestBrowserIdle checks that an idle browser is ended after idleMinutes.
func TestBrowserIdle(t *testing.T) {
	_, a := newBrowsers(t, func(*site) {})
	a.Browsers.FreezeAfter, a.Browsers.Idle = 200*time.Millisecond, 400*time.Millisecond
	used, err := a.Browsers.Use(session("browser"))
	if err != nil {
		t.Fatal(err)
	}
	b := startBrowser(t, used)
	used.Release()
	awaitBrowser(t, func() bool { return b.Err() != nil })
}

// stoppedProcesses counts the processes of Chromium that are not stopped.
const stoppedProcesses = `n=0; for p in /proc/[0-9]*; do case "$(cat $p/comm 2>/dev/null)" in chrom*|headless*)
case "$(sed -n 's/^State:\t\(.\).*/\1/p' $p/status 2>/dev/null)" in T|Z|"") ;; *) n=$((n+1));; esac;; esac; done; echo $n`

// awaitBrowser waits until something holds.
func awaitBrowser(t *testing.T, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not happen")
		}
	}
}

// TestBrowserAutoStart: a browser starts with its session only if that is asked for, and
// not by the tool where a person starts it.
func TestBrowserAutoStart(t *testing.T) {
	t.Run("true", func(t *testing.T) {
		s := newToolSiteWith(t, func(s *toolSite) { s.set("agents.defaults.sandbox.browser.autoStart", true) })
		awaitBrowser(t, func() bool { return browserRuns(t, s.app) })
	})
	t.Run("false", func(t *testing.T) {
		s := newToolSiteWith(t, func(s *toolSite) { s.set("agents.defaults.sandbox.browser.autoStart", false) })
		if r := s.do(t, `{"action":"open","url":"http://bank.example/"}`); !r.IsError || !strings.Contains(r.Text, "leaves its start to a person") || browserRuns(t, s.app) {
			t.Error(r.Text)
		}
		startBrowser(t, useBrowser(t, s.app, session("tool")))
		wants(t, s.ok(t, `{"action":"open","url":"http://bank.example/"}`), "Log in")
	})
	t.Run("by default", func(t *testing.T) {
		need.Time(t, "it starts a session that must start nothing")
		s := newToolSite(t)
		if len(s.rows(s.app)) != 1 {
			t.Errorf("%+v", s.rows(s.app))
		}
	})
}

// browserRuns reports whether this process has a browser that runs.
func browserRuns(t *testing.T, a *app.App) bool {
	t.Helper()
	rows, err := a.Manager.Registry.List(context.WithoutCancel(t.Context()), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if a.Browsers.IsOpen(row.ContainerName) {
			return true
		}
	}
	return false
}

// TestBrowserBinds: directories of the host are in a browser's sandbox if they are bound,
// and are judged as binds of other sandboxes are.
func TestBrowserBinds(t *testing.T) {
	shared := t.TempDir()
	if err := os.WriteFile(filepath.Join(shared, "font"), []byte("bound"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, a := newBrowsers(t, func(s *site) {
		s.set("agents.defaults.sandbox.docker.dangerouslyAllowExternalBindSources", true)
		s.set("agents.defaults.sandbox.browser.binds", []any{shared + ":/fonts:ro"})
	})
	box, err := a.ProvideBrowser(t.Context(), session("browser"))
	if err != nil {
		t.Fatal(err)
	}
	defer box.Release()
	if out := sh(t, box, "cat /fonts/font; touch /fonts/x 2>/dev/null && echo written; true"); out != "bound" {
		t.Error(out)
	}
	_, a = newBrowsers(t, func(s *site) { s.set("agents.defaults.sandbox.browser.binds", []any{"/etc:/fonts"}) })
	if _, err := a.ProvideBrowser(t.Context(), session("browser")); err == nil || !strings.Contains(err.Error(), "sandbox.browser.binds[0]") {
		t.Error(err)
	}
}
