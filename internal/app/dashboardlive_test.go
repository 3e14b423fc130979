package app_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/dashboard"
	"github.com/atoll-run/atoll/internal/testkit/grouptest"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// Pages show what happens without asking for it, and a terminal in a sandbox, in a real
// browser.
func TestDashboardLive(t *testing.T) {
	t.Parallel()
	need.Time(t, "it runs a browser and packages of npm")
	grouptest.Need(t)
	need.Program(t, "chromium-headless-shell", "chromium-headless-shell")
	modules := webModules(t)
	s, _ := gatewaySite(t)
	s.set("runs.variants.waits", map[string]any{"name": "Waits", "argv": []string{"/bin/sh", "-c", "echo first words >&2; exec sleep 600"}, "read": "text"})
	g := s.gateway(time.Minute)
	box, err := g.CreateSandbox(t.Context(), &api.CreateSandbox{})
	if err != nil {
		t.Fatal(err)
	}
	checkOperators(t, g)
	code, err := g.CreateLogInCode(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	given, err := json.Marshal(map[string]string{"code": code.Code, "box": box.ID, "name": box.ContainerName, "title": "Terminal · Atoll"})
	if err != nil {
		t.Fatal(err)
	}
	out := s.runNode(modules, "dashboardlive.mjs", "DASHBOARD_URL=http://"+g.address+dashboard.Prefix, "DASHBOARD_GIVEN="+string(given), "DASHBOARD_CHROMIUM=/usr/lib/chromium/chromium-headless-shell")
	if !bytes.Contains(out, []byte(`{"failures":[]}`)) {
		t.Errorf("%s", out)
	}
}

// checkOperators asks what pages of operators show.
func checkOperators(t *testing.T, g *gatewayProcess) {
	t.Helper()
	budgets, err := g.Budgets(t.Context())
	if err != nil || len(budgets.Budgets) < 2 {
		t.Errorf("%+v, %v", budgets, err)
	}
	shown, err := g.Config(t.Context(), api.ConfigQuery{})
	if err != nil || !slices.ContainsFunc(shown.Settings, func(s api.Setting) bool { return s.Key == "sandbox.mode" && s.Source != "" }) {
		t.Errorf("%+v, %v", shown, err)
	}
	if _, err := g.Images(t.Context()); err != nil {
		t.Error(err)
	}
	if relays, err := g.Relays(t.Context(), api.RelayQuery{}); err != nil || relays.Total != 0 {
		t.Errorf("%+v, %v", relays, err)
	}
	if _, err := g.Relay(t.Context(), "run-none"); err == nil {
		t.Error("there is a record of no run")
	}
}
