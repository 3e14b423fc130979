package attach_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/browser/attach"
)

// inSession returns a call in a session.
func inSession(id int, session, method string) []byte {
	return fmt.Appendf(nil, `{"id":%d,"method":%q,"sessionId":%q}`, id, method, session)
}

// TestSessions checks that a program has the sessions that it was given and no other
// (attack 21).
func TestSessions(t *testing.T) {
	f := newFilter()
	if got := kind(t, must(t, f.FromProgram, inSession(1, "S", "Page.enable"))); got != "refuse" {
		t.Error(got)
	}
	must(t, f.FromBrowser, attached("S", ""))
	if got := kind(t, must(t, f.FromProgram, inSession(2, "S", "Page.enable"))); got != "pass" {
		t.Error(got)
	}
	if out := must(t, f.FromBrowser, []byte(`{"method":"Page.loaded","sessionId":"stranger","params":{}}`)); out.ToProgram != nil {
		t.Errorf("an event of another session: %s", out.ToProgram)
	}
	must(t, f.FromBrowser, []byte(`{"method":"Target.detachedFromTarget","params":{"sessionId":"S"}}`))
	if got := kind(t, must(t, f.FromProgram, inSession(2, "S", "Page.enable"))); got != "refuse" {
		t.Error("a session that was left:", got)
	}
	if out := must(t, f.FromBrowser, []byte(`{"id":2,"sessionId":"S","result":{}}`)); out.ToProgram != nil {
		t.Errorf("an answer of a session that was left: %s", out.ToProgram)
	}
}

// TestSessionThatIsGone checks the answer of Chromium for a session that ended before a
// call arrived.
func TestSessionThatIsGone(t *testing.T) {
	f := newFilter()
	must(t, f.FromBrowser, attached("S", ""))
	must(t, f.FromProgram, inSession(2, "S", "Page.enable"))
	if out := must(t, f.FromBrowser, []byte(`{"id":2,"error":{"code":-32001,"message":"Session with given id not found."}}`)); out.ToProgram == nil {
		t.Error("the error was not passed on")
	}
}

// TestSessionsAreBounded checks that a browser cannot announce sessions without end.
func TestSessionsAreBounded(t *testing.T) {
	f := newFilter()
	for i := range 1000 {
		must(t, f.FromBrowser, attached(fmt.Sprint(i), ""))
	}
	if _, err := f.FromBrowser(attached("more", "")); err == nil {
		t.Error("there is no end")
	}
}

// made lets a program make a browser context.
func made(t *testing.T, f *attach.Filter, id int, context string) {
	t.Helper()
	must(t, f.FromProgram, call(id, "Target.createBrowserContext", "{}"))
	must(t, f.FromBrowser, fmt.Appendf(nil, `{"id":%d,"result":{"browserContextId":%q}}`, id, context))
}

// TestContexts checks that the browser context of a program is hidden from others, until
// it ends (attacks 13, 21).
func TestContexts(t *testing.T) {
	all := &attach.Contexts{}
	a, b := attach.NewFilter(all, nil), attach.NewFilter(all, nil)
	made(t, b, 1, "B")
	for _, method := range []string{"Storage.getCookies", "Storage.setCookies", "Target.createTarget", "Target.disposeBrowserContext", "Browser.grantPermissions"} {
		if got := kind(t, must(t, a.FromProgram, call(1, method, `{"browserContextId":"B"}`))); got != "refuse" {
			t.Error(method, got)
		}
	}
	if got := kind(t, must(t, b.FromProgram, call(2, "Storage.getCookies", `{"browserContextId":"B"}`))); got != "pass" {
		t.Error("its own:", got)
	}
	for _, event := range []string{"targetCreated", "targetInfoChanged"} {
		text := fmt.Appendf(nil, `{"method":"Target.%s","params":{"targetInfo":{"targetId":"T","browserContextId":"B"}}}`, event)
		if out := must(t, a.FromBrowser, text); out.ToProgram != nil {
			t.Errorf("%s", out.ToProgram)
		}
	}
	must(t, a.FromProgram, call(3, "Target.getTargets", "{}"))
	out := must(t, a.FromBrowser, []byte(`{"id":3,"result":{"targetInfos":[{"targetId":"1","browserContextId":"B"},{"targetId":"2","browserContextId":"D"}]}}`))
	if got := string(out.ToProgram); strings.Contains(got, `"B"`) || !strings.Contains(got, `"D"`) {
		t.Error(got)
	}
	must(t, a.FromProgram, call(4, "Target.getBrowserContexts", "{}"))
	if out := must(t, a.FromBrowser, []byte(`{"id":4,"result":{"browserContextIds":["B","A"],"defaultBrowserContextId":"D"}}`)); strings.Contains(string(out.ToProgram), `"B"`) || !strings.Contains(string(out.ToProgram), `"defaultBrowserContextId":"D"`) {
		t.Errorf("%s", out.ToProgram)
	}
	b.Close()
	if got := kind(t, must(t, a.FromProgram, call(1, "Storage.getCookies", `{"browserContextId":"B"}`))); got != "pass" {
		t.Error("after its end:", got)
	}
}

// TestForeignPages checks that the session of another program's page is left at once, and
// that the page goes on.
func TestForeignPages(t *testing.T) {
	all := &attach.Contexts{}
	a, b := attach.NewFilter(all, nil), attach.NewFilter(all, nil)
	made(t, b, 1, "B")
	out := must(t, a.FromBrowser, attached("S", "B"))
	if out.ToProgram != nil || len(out.ToBrowser) != 2 || !strings.Contains(string(out.ToBrowser[0]), "runIfWaitingForDebugger") || !strings.Contains(string(out.ToBrowser[1]), "detachFromTarget") {
		t.Fatalf("%s %s", out.ToProgram, out.ToBrowser)
	}
	for _, text := range []string{`{"id":1073741825,"sessionId":"S","result":{}}`, `{"id":1073741826,"result":{}}`} {
		if out := must(t, a.FromBrowser, []byte(text)); out.ToProgram != nil {
			t.Errorf("an answer to the filter: %s", out.ToProgram)
		}
	}
	if got := kind(t, must(t, a.FromProgram, inSession(1, "S", "Network.getCookies"))); got != "refuse" {
		t.Error(got)
	}
	if out := must(t, a.FromBrowser, []byte(`{"method":"Target.detachedFromTarget","params":{"sessionId":"S"}}`)); out.ToProgram != nil {
		t.Errorf("%s", out.ToProgram)
	}
}

// TestContextsAreBounded checks that a program cannot make browser contexts without end,
// and that one that it removed counts no more.
func TestContextsAreBounded(t *testing.T) {
	f := newFilter()
	for i := range 100 {
		made(t, f, i+1, fmt.Sprint(i))
	}
	must(t, f.FromProgram, call(1, "Target.disposeBrowserContext", `{"browserContextId":"7"}`))
	must(t, f.FromBrowser, []byte(`{"id":1,"result":{}}`))
	made(t, f, 1, "again")
	must(t, f.FromProgram, call(1, "Target.createBrowserContext", "{}"))
	if _, err := f.FromBrowser([]byte(`{"id":1,"result":{"browserContextId":"more"}}`)); err == nil {
		t.Error("there is no end")
	}
}

// TestBrowsersOwnPages checks that programs neither see nor get the pages that are parts of
// the browser itself (attack 21).
func TestBrowsersOwnPages(t *testing.T) {
	f := newFilter()
	must(t, f.FromProgram, []byte(`{"id":1,"method":"Target.getTargets"}`))
	list := must(t, f.FromBrowser, []byte(`{"id":1,"result":{"targetInfos":[{"targetId":"A","url":"chrome://omnibox-popup.top-chrome/"},{"targetId":"B","url":"https://example.com/"}]}}`))
	if text := string(list.ToProgram); strings.Contains(text, `"A"`) || !strings.Contains(text, `"B"`) {
		t.Error(text)
	}
	for _, url := range []string{"chrome://settings/", "chrome-untrusted://x/", "devtools://devtools/"} {
		out := must(t, f.FromBrowser, fmt.Appendf(nil, `{"method":"Target.attachedToTarget","params":{"sessionId":"S","targetInfo":{"targetId":"A","url":%q}}}`, url))
		if out.ToProgram != nil || len(out.ToBrowser) != 2 || !strings.Contains(string(out.ToBrowser[1]), "Target.detachFromTarget") {
			t.Errorf("%s: %s", url, out.ToProgram)
		}
		if got := kind(t, must(t, f.FromProgram, inSession(2, "S", "Runtime.evaluate"))); got != "refuse" {
			t.Error(url, got)
		}
	}
}
