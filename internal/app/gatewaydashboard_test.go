package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/gateway/dashboard"
	"github.com/atoll-run/atoll/internal/testkit/grouptest"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// webModules returns where scripts/sdks.sh installed what builds and tests the pages.
func webModules(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "../../scripts/sdks.sh", "dir", "dashboard").Output()
	if err != nil {
		t.Fatal(err)
	}
	modules := filepath.Join(strings.TrimSpace(string(out)), "node_modules")
	if _, err := os.Stat(filepath.Join(modules, "playwright-core")); err != nil {
		need.Missing(t, fmt.Errorf("%w: run scripts/sdks.sh up dashboard", err))
	}
	return modules
}

// The pages are shown by a real browser, with real runs and sandboxes behind them, and
// withstand pages of other sites.
func TestDashboard(t *testing.T) {
	t.Parallel()
	need.Time(t, "it runs a browser and packages of npm")
	grouptest.Need(t)
	need.Program(t, "chromium-headless-shell", "chromium-headless-shell")
	modules := webModules(t)
	d := newDashboardSite(t)
	code, err := d.g.CreateLogInCode(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d.given["code"] = code.Code
	given, err := json.Marshal(d.given)
	if err != nil {
		t.Fatal(err)
	}
	out := d.runNode(modules, "dashboard.mjs", "DASHBOARD_URL=http://"+d.g.address+dashboard.Prefix, "DASHBOARD_GIVEN="+string(given), "DASHBOARD_CHROMIUM=/usr/lib/chromium/chromium-headless-shell")
	if !bytes.Contains(out, []byte(`{"failures":[]}`)) {
		t.Errorf("%s", out)
	}
}

// runNode runs a program of testdata with packages of npm.
func (s *site) runNode(modules, program string, env ...string) []byte {
	s.t.Helper()
	dir := s.t.TempDir()
	text, err := os.ReadFile(filepath.Join("testdata", program))
	if err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, program), text, 0o600); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.CommandContext(s.t.Context(), "node", program)
	cmd.Dir, cmd.Env = dir, append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}, env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Errorf("%s: %v", program, err)
	}
	return out
}
