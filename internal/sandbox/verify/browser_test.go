package verify

import (
	"slices"
	"testing"

	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/wire/findings"
)

// TestBrowserRing: a renderer that lacks a namespace or a filter is a gap.
func TestBrowserRing(t *testing.T) {
	e := sound()
	e.Spec.Kind = sandbox.KindBrowser
	e.Inside.Self.Filters = 2
	whole := findings.Renderer{PID: 7, Filters: 3, Namespaces: map[string]string{"user": "user:[1]", "pid": "pid:[1]", "net": "net:[1]"}}
	e.Inside.Renderers = []findings.Renderer{whole}
	if broken := gaps(Checks(e)); len(broken) > 0 {
		t.Errorf("gaps: %q", broken)
	}
	for name, spoil := range map[string]func(*findings.Renderer){
		"filter":  func(r *findings.Renderer) { r.Filters = 2 },
		"network": func(r *findings.Renderer) { r.Namespaces["net"] = e.Inside.Namespaces["net"] },
		"unread":  func(r *findings.Renderer) { delete(r.Namespaces, "user") },
	} {
		bad := findings.Renderer{PID: 8, Filters: 3, Namespaces: map[string]string{"user": "user:[1]", "pid": "pid:[1]", "net": "net:[1]"}}
		spoil(&bad)
		e.Inside.Renderers = []findings.Renderer{whole, bad}
		if broken := gaps(Checks(e)); !slices.Equal(broken, []string{"browser: Chromium's own sandbox"}) {
			t.Errorf("%s: gaps %q", name, broken)
		}
	}
	e.Spec.NoBrowserSandbox = true
	for _, c := range Checks(e) {
		if c.Ring == "browser" && c.Status != Note {
			t.Errorf("switched off: %+v", c)
		}
	}
}

// TestBrowserCalls: namespaces that Chromium needs are open in its sandbox alone.
func TestBrowserCalls(t *testing.T) {
	e := sound()
	e.Inside.Calls = append(e.Inside.Calls, findings.Attempt{Name: "clone user"})
	if broken := gaps(Checks(e)); len(broken) != 1 {
		t.Errorf("a command sandbox: gaps %q", broken)
	}
	e.Spec.Kind = sandbox.KindBrowser
	if broken := gaps(Checks(e)); len(broken) > 0 {
		t.Errorf("a browser: gaps %q", broken)
	}
}
