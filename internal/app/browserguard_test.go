package app_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/browser"
	"github.com/atoll-run/atoll/internal/browser/devtools"
	browsers "github.com/atoll-run/atoll/internal/browser/service"
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

// attackDocuments (8): a tab loads no document of a blocked scheme, also when a program
// navigates it, and the host records the refusal. chromium-headless-shell ignores managed
// policies.
func attackDocuments(t *testing.T, s *attackSite) {
	b := s.started(t)
	for _, address := range []string{"file:///etc/passwd", "view-source:file:///etc/passwd", "chrome://version", "chrome://inspect", "ftp://shop.example/"} {
		page, err := b.NewPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var begun struct {
			ErrorText string `json:"errorText"`
		}
		if err := rawPage(t, b.Conn(), page.ID).Call(t.Context(), "Page.navigate", map[string]any{"url": address}, &begun); err == nil && begun.ErrorText == "" {
			t.Errorf("%s was opened", address)
		}
		page.Leave()
		_ = b.CloseTab(t.Context(), page.ID) // it may be closed already
	}
	if refused := strings.Join(b.Refused(), " "); !b.Windowed() && !strings.Contains(refused, "file:///etc/passwd") {
		t.Errorf("refused: %s", refused)
	}
	if title := s.evaluated(t, "http://shop.example/", "document.title"); !strings.Contains(title, "Shop") {
		t.Errorf("a page of the web: %s", title)
	}
	attackTabOfNobody(t, b)
}

// attackTabOfNobody (8): a tab that the host has not attached to is closed when it shows a
// file.
func attackTabOfNobody(t *testing.T, b *browsers.Started) {
	t.Helper()
	tab := rawTab(t, b.Conn())
	_ = rawPage(t, b.Conn(), tab).Call(t.Context(), "Page.navigate", map[string]any{"url": "file:///etc/hostname"}, &struct{}{}) // it ends with the tab
	if b.Windowed() {                                                                                                            // the policy has refused it, and the tab shows that
		_ = b.CloseTab(t.Context(), tab)
		return
	}
	awaitBrowser(t, func() bool {
		tabs, err := b.Tabs(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return !slices.ContainsFunc(tabs, func(x browser.Tab) bool { return x.ID == tab })
	})
	if refused := strings.Join(b.Refused(), " "); !strings.Contains(refused, "file:///etc/hostname") {
		t.Errorf("refused: %s", refused)
	}
}

// attackCookies (13): sessions of one agent have browsers of their own, also where they
// share a sandbox for commands; accounts never share one.
func attackCookies(t *testing.T, s *attackSite) {
	evaluateAt(t, s.used, keptCookie)
	for _, other := range []provide.Subject{{SessionKey: s.who.SessionKey + "-two"}, {SessionKey: s.who.SessionKey, Account: "other"}} {
		used := useBrowser(t, s.app, other)
		if said := evaluateAt(t, used, storedCookie); strings.Contains(said, "ann") {
			t.Errorf("%+v: %s", other, said)
		}
		if err := used.Stop(); err != nil {
			t.Error(err)
		}
	}
}

// TestAttackBrowser13_SharedProfile: sessions of one agent share the cookies of a profile
// that is kept for the agent; accounts do not.
func TestAttackBrowser13_SharedProfile(t *testing.T) {
	_, a := newBrowsers(t, func(s *site) {
		s.set("agents.defaults.sandbox.scope", "agent")
		s.set("agents.defaults.sandbox.browser.profile", "agent")
	})
	evaluateAt(t, useBrowser(t, a, session("one")), keptCookie)
	if said := evaluateAt(t, useBrowser(t, a, session("two")), storedCookie); !strings.Contains(said, "ann") {
		t.Errorf("another session: %s", said)
	}
	other := provide.Subject{SessionKey: session("one").SessionKey, Account: "other"}
	if said := evaluateAt(t, useBrowser(t, a, other), storedCookie); strings.Contains(said, "ann") {
		t.Errorf("another account: %s", said)
	}
}
