package app_test

import (
	"bytes"
	"encoding/json"
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
