package app_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/browser"
	"github.com/atoll-run/atoll/internal/browser/devtools"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// rawTab opens a tab that the host has not attached to.
func rawTab(t *testing.T, conn *devtools.Conn) (id string) {
	t.Helper()
	var made struct {
		TargetID string `json:"targetId"`
	}
	if err := conn.Session("").Call(t.Context(), "Target.createTarget", map[string]any{"url": "about:blank"}, &made); err != nil {
		t.Fatal(err)
	}
	return made.TargetID
}

// rawPage returns a session of a tab that no filter judges.
func rawPage(t *testing.T, conn *devtools.Conn, tab string) *devtools.Session {
	t.Helper()
	var attached struct {
		SessionID string `json:"sessionId"`
	}
	if err := conn.Session("").Call(t.Context(), "Target.attachToTarget", map[string]any{"targetId": tab, "flatten": true}, &attached); err != nil {
		t.Fatal(err)
	}
	return conn.Session(attached.SessionID)
}

// TestAttackBrowser08_Documents checks that a tab loads no document of a blocked scheme,
// also when a program navigates it, and that the host records the refusal.
// chromium-headless-shell ignores managed policies.
func TestAttackBrowser08_Documents(t *testing.T) {
	s := newBrowserSite(t)
	for _, address := range []string{"file:///etc/passwd", "view-source:file:///etc/passwd", "chrome://version", "chrome://inspect", "ftp://shop.example/"} {
		page, err := s.browser.NewPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var begun struct {
			ErrorText string `json:"errorText"`
		}
		if err := rawPage(t, s.browser.Conn(), page.ID).Call(t.Context(), "Page.navigate", map[string]any{"url": address}, &begun); err == nil && begun.ErrorText == "" {
			t.Errorf("%s was opened", address)
		}
		page.Leave()
		_ = s.browser.CloseTab(t.Context(), page.ID) // it may be closed already
	}
	if refused := strings.Join(s.browser.Refused(), " "); !strings.Contains(refused, "file:///etc/passwd") {
		t.Errorf("refused: %s", refused)
	}
	if state, _ := s.visit(t, "/"); state.Title != "Shop" {
		t.Errorf("a page of the web: %+v", state)
	}
	t.Run("a tab of nobody", func(t *testing.T) { testTabOfNobody(t, s) })
}

// testTabOfNobody: a tab that the host has not attached to is closed when it shows a file.
func testTabOfNobody(t *testing.T, s *browserSite) {
	tab := rawTab(t, s.browser.Conn())
	_ = rawPage(t, s.browser.Conn(), tab).Call(t.Context(), "Page.navigate", map[string]any{"url": "file:///etc/hostname"}, &struct{}{}) // it ends with the tab
	awaitBrowser(t, func() bool {
		tabs, err := s.browser.Tabs(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return !slices.ContainsFunc(tabs, func(x browser.Tab) bool { return x.ID == tab })
	})
	if refused := strings.Join(s.browser.Refused(), " "); !strings.Contains(refused, "file:///etc/hostname") {
		t.Errorf("refused: %s", refused)
	}
}

// TestAttackBrowser13_Cookies: sessions of one agent have browsers of their own, also where
// they share a sandbox, unless the profile is kept for the agent; accounts never share one.
func TestAttackBrowser13_Cookies(t *testing.T) {
	for profile, shares := range map[string]bool{"ephemeral": false, "agent": true} {
		t.Run(profile, func(t *testing.T) {
			_, a := newBrowsers(t, func(s *site) {
				s.set("agents.defaults.sandbox.scope", "agent")
				s.set("agents.defaults.sandbox.browser.profile", profile)
			})
			evaluateAt(t, useBrowser(t, a, session("one")), keptCookie)
			if said := evaluateAt(t, useBrowser(t, a, session("two")), storedCookie); strings.Contains(said, "ann") != shares {
				t.Errorf("another session: %s", said)
			}
			other := provide.Subject{SessionKey: session("one").SessionKey, Account: "other"}
			if said := evaluateAt(t, useBrowser(t, a, other), storedCookie); strings.Contains(said, "ann") {
				t.Errorf("another account: %s", said)
			}
		})
	}
}
