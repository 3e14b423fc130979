package browsers

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/browser"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// What keeps a browser from being started is told with what to do, and nothing else of the
// host is.
func TestProblemsOfAStart(t *testing.T) {
	image := errhint.With(&provide.BrowserImageError{Image: "own:1", IsThere: true}, "build it: `atoll images build browser`")
	for _, c := range []struct {
		err                error
		code, detail, hint string
	}{
		{browser.ErrNoProgram, "browser_no_program", "no chromium", "atoll images build browser"},
		{browser.ErrNoScreen, "browser_no_screen", "Xtigervnc", "atoll images build browser"},
		{fmt.Errorf("the browser ended: %w", browser.ErrNamespaces), "browser_namespaces", "user namespaces", "dangerouslyNoSandbox"},
		{&sandbox.ProvisionError{Name: "secret-name", Step: "image", Err: image}, "browser_image", "stale or incompatible (contract=missing, expected=2026-05-12-cdp-relay-auth)", "atoll images build browser"},
	} {
		p := Problem(fmt.Errorf("/srv/state: %w", c.err))
		if p == nil || p.Status != http.StatusUnprocessableEntity || p.Code != c.code || !strings.Contains(p.Detail, c.detail) || !strings.Contains(p.Hint, c.hint) {
			t.Errorf("%v: %+v", c.err, p)
			continue
		}
		if strings.Contains(p.Detail, "/srv/state") || strings.Contains(p.Detail, "secret-name") {
			t.Errorf("told: %s", p.Detail)
		}
	}
	if p := Problem(errors.New("other")); p != nil {
		t.Errorf("%+v", p)
	}
}
