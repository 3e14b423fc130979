package browsertest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/client"
	"github.com/atoll-run/atoll/internal/gateway/serve"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// point is a place on a page, or on a window, in parts of its size.
type point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

// measure says where the form of the shop is: on its page, and on the window around it.
const measure = `(() => {
	const at = (s) => { const b = document.querySelector(s).getBoundingClientRect(); return {x: b.x + b.width / 2, y: b.y + b.height / 2}; };
	const whole = outerHeight > innerHeight, top = whole ? outerHeight - innerHeight : 0, size = whole ? {x: screen.width, y: screen.height} : {x: innerWidth, y: innerHeight};
	const part = (p) => ({x: (p.x + (whole ? screenX : 0)) / size.x, y: (p.y + top + (whole ? screenY : 0)) / size.y});
	return JSON.stringify({input: part(at('input')), button: part(at('button'))});
})()`

// shopInFirstTab shows the shop in a tab and closes all others, so that viewers see it. It
// returns a program at it and where its form is.
func (s *site) shopInFirstTab(t *testing.T) (p *program, session string, places map[string]point) {
	t.Helper()
	p = s.program(t, "operator")
	var found struct {
		Result struct {
			TargetInfos []struct{ TargetID, Type string }
		}
	}
	if err := json.Unmarshal([]byte(p.call("", "Target.getTargets", `{}`)), &found); err != nil {
		t.Fatal(err)
	}
	for _, target := range found.Result.TargetInfos {
		switch {
		case target.Type != "page":
		case session == "":
			session = member(t, p.call("", "Target.attachToTarget", `{"flatten":true,"targetId":"`+target.TargetID+`"}`), "sessionId")
		default:
			p.call("", "Target.closeTarget", `{"targetId":"`+target.TargetID+`"}`)
		}
	}
	p.call(session, "Page.bringToFront", `{}`)
	p.call(session, "Page.navigate", `{"url":"http://shop.example/"}`)
	waitFor(t, func() bool { return evaluate(t, p, session, `document.readyState + document.title`) == "completeShop" })
	if err := json.Unmarshal([]byte(evaluate(t, p, session, measure)), &places); err != nil {
		t.Fatal(err)
	}
	return p, session, places
}

// evaluate returns the text that an expression has on a page.
func evaluate(t *testing.T, p *program, session, expression string) string {
	t.Helper()
	params, err := json.Marshal(map[string]any{"expression": expression, "returnByValue": true})
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		Result struct{ Result struct{ Value string } }
	}
	if err := json.Unmarshal([]byte(p.call(session, "Runtime.evaluate", string(params))), &m); err != nil {
		t.Fatal(err)
	}
	return m.Result.Result.Value
}

// testPage opens the page of `atoll browser watch` and that of the dashboard with Debian's
// Chromium, and uses the browser through both.
func (s *site) testPage(t *testing.T, kind string) {
	need.Program(t, "chromium-headless-shell", "chromium-headless-shell")
	p, session, places := s.shopInFirstTab(t)
	out, said, code := s.atoll(t, "browser", "watch", s.name, "--no-open", "--json")
	var endpoint api.BrowserEndpoint
	if err := json.Unmarshal([]byte(out), &endpoint); code != 0 || err != nil || !strings.Contains(endpoint.Page, "/"+kind+"/") {
		t.Fatalf("%d %s %s, %v", code, out, said, err)
	}
	owner, err := client.New(client.Options{Socket: serve.SocketPath(s.app.Settings)})
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	login, err := owner.CreateLogInCode(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	given := map[string]any{"page": endpoint.Page, "dashboard": login.URL, "name": s.name, "kind": kind, "places": places, "shot": os.Getenv("VIEWER_SHOT")}
	runViewer(t, given)
	if got := evaluate(t, p, session, `document.querySelector('input').value`); !strings.Contains(got, "Bea") || !strings.Contains(got, "Cleo") {
		t.Errorf("the form has %q", got)
	}
}

// runViewer runs testdata/viewer.mjs.
func runViewer(t *testing.T, given map[string]any) {
	t.Helper()
	text, err := json.Marshal(given)
	if err != nil {
		t.Fatal(err)
	}
	installed, dir := modules(t), t.TempDir()
	program, err := os.ReadFile("testdata/viewer.mjs")
	if err == nil {
		err = errors.Join(os.WriteFile(filepath.Join(dir, "viewer.mjs"), program, 0o600), os.Symlink(installed, filepath.Join(dir, "node_modules")))
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(installed, ".bin", "node"), "viewer.mjs")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "VIEWER_CHROMIUM=/usr/lib/chromium/chromium-headless-shell", "VIEWER_GIVEN=" + string(text)}
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte(`{"failures":[]}`)) {
		t.Errorf("%v\n%s", err, out)
	}
}
