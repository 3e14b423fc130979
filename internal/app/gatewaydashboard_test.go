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
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/dashboard"
	"github.com/atoll-run/atoll/internal/gateway/serve"
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
	const hostile = `<img src=x onerror="window.pwned=1">`
	ask := `curl -sS -H 'Content-Type: application/json' -d '{"model":"small","messages":[{"role":"user","content":"hi"}]}' http://127.0.0.1:8080/v1/chat/completions && echo '` + hostile + `'`
	s, _ := gatewaySite(t)
	s.set("runs.variants.asks", map[string]any{"name": "Asks", "argv": []string{"/bin/sh", "-c", ask}, "read": "text"})
	s.set("runs.variants.fails", map[string]any{"name": "Fails", "argv": []string{"/bin/sh", "-c", "exit 3"}, "read": "text"})
	g := s.gateway(time.Minute)
	done := s.dashboardRun(g, "asks", hostile)
	failed := s.dashboardRun(g, "fails", hostile)
	if _, err := g.CreateSandbox(t.Context(), &api.CreateSandbox{}); err != nil {
		t.Fatal(err)
	}
	code, err := g.CreateLogInCode(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	reader, _, err := serve.Tokens(s.open().Installation).Create(t.Context(), access.Spec{Scope: access.Read, Account: "somebody-else"})
	if err != nil {
		t.Fatal(err)
	}
	given, err := json.Marshal(map[string]string{"code": code.Code, "reader": reader.Reveal(), "run": done, "failed": failed})
	if err != nil {
		t.Fatal(err)
	}
	out := s.runNode(modules, "dashboard.mjs", "DASHBOARD_URL=http://"+g.address+dashboard.Prefix, "DASHBOARD_GIVEN="+string(given), "DASHBOARD_CHROMIUM=/usr/lib/chromium/chromium-headless-shell")
	if !bytes.Contains(out, []byte(`{"failures":[]}`)) {
		t.Errorf("%s", out)
	}
}

// dashboardRun carries a run out and returns its id.
func (s *site) dashboardRun(g *gatewayProcess, agent, task string) string {
	s.t.Helper()
	begun, err := g.Start(s.t.Context(), &api.RunRequest{GraphID: agent, Message: task}, "")
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := g.Events(s.t.Context(), begun.ID, 0, func(api.Event) error { return nil }); err != nil {
		s.t.Fatal(err)
	}
	return begun.ID
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
