package openclawtest_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/fakellm"
	"github.com/atoll-run/atoll/internal/testkit/internettest"
	"github.com/atoll-run/atoll/internal/testkit/need"
	"github.com/atoll-run/atoll/internal/testkit/openclawtest"
)

// browserConfig has OpenClaw's browser tool use a browser in a container.
const browserConfig = `{
  "models": {"mode": "replace", "providers": {"scripted": {
    "baseUrl": "$MODEL", "apiKey": "none", "api": "openai-completions", "models": [{"id": "m", "name": "m"}]}}},
  "plugins": {"enabled": true, "allow": ["browser"], "entries": {"browser": {"enabled": true}}},
  "gateway": {"mode": "local"},
  "browser": {"enabled": true, "ssrfPolicy": {"dangerouslyAllowPrivateNetwork": true}},
  "tools": {"profile": "full", "toolSearch": false, "sandbox": {"tools": {"alsoAllow": ["browser"]}}},
  "agents": {"defaults": {
    "model": {"primary": "scripted/m"}, "workspace": "$WORKSPACE", "skipBootstrap": true,
    "sandbox": {"mode": "all", "scope": "agent", "workspaceAccess": "none",
      "browser": {"enabled": true, "headless": true, "image": "$IMAGE", "autoStartTimeoutMs": 60000}}}}
}
`

// browserImage is made for these tests; the engine has most of it.
const browserImage = "atoll-test-browser:openclaw"

// TestOpenClawBrowser: the unmodified OpenClaw uses its browser tool on our image, in a
// container without a network, whose pages come through egress.
func TestOpenClawBrowser(t *testing.T) {
	need.Time(t, "it builds an image with Chromium")
	net, err := internettest.Start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<!doctype html><title>Shop</title><h1>Fruit of %s</h1><button>Buy</button>", r.Host)
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = net.Close() })
	d := newDesk(t, openclawtest.Current, "none", fakellm.Script{
		fakellm.Use("browser", `{"action":"open","targetUrl":"http://shop.example/"}`),
		{When: "targetId", Calls: fakellm.Use("browser", `{"action":"snapshot"}`).Calls},
		{When: `button "Buy"`, Calls: fakellm.Use("browser", `{"action":"open","targetUrl":"http://other.example/"}`).Calls},
		fakellm.Say("all done"),
	})
	d.useBrowser(net.Proxy)
	out := d.openclaw("agent", "--local", "--agent", "main", "--message", "look", "--json")
	if err := d.model.Err(); err != nil || !strings.Contains(out, "all done") {
		t.Fatalf("%v\n%s", err, out)
	}
	if asked := net.Asked(); !slices.Equal(slices.Compact(asked), []string{"shop.example:80"}) {
		t.Errorf("pages reached %v", asked)
	}
	d.checkBrowser()
}

// checkBrowser checks the container of the browser: it has no network, and its port wants
// the password that OpenClaw made.
func (d *fixture) checkBrowser() {
	d.Helper()
	name := d.docker("ps", "--filter", "label=openclaw.sandboxBrowser=1", "--format", "{{.Names}}")
	if out := d.docker("exec", name, "cat", "/proc/net/dev"); strings.Contains(out, "eth0") {
		d.Errorf("the browser has a network: %s", out)
	}
	request, err := http.NewRequestWithContext(d.Context(), http.MethodGet, "http://"+d.docker("port", name, "9222/tcp")+"/json/version", nil)
	if err != nil {
		d.Fatal(err)
	}
	answer, err := (&http.Client{Timeout: time.Minute}).Do(request)
	if err != nil {
		d.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusUnauthorized {
		d.Errorf("without a password: %s", answer.Status)
	}
}

// useBrowser configures OpenClaw's browser, and what its pages may reach.
func (d *fixture) useBrowser(proxy string) {
	d.Helper()
	cmd := exec.CommandContext(d.Context(), filepath.Join(filepath.Dir(d.home.Docker), "atoll"), "images", "build", "browser", "--backend", "docker", "--network", "host", "--target-image", browserImage)
	cmd.Env = append(os.Environ(), d.home.Env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		d.Fatalf("%v\n%s", err, out)
	}
	text := strings.NewReplacer("$MODEL", d.home.Model, "$WORKSPACE", d.home.Workspace(), "$IMAGE", browserImage).Replace(browserConfig)
	if err := d.home.Configure([]byte(text)); err != nil {
		d.Fatal(err)
	}
	d.home.Hosts = filepath.Join(d.home.Dir, "hosts") // OpenClaw resolves names itself, before the browser is asked
	if err := os.WriteFile(d.home.Hosts, []byte("127.0.0.1 localhost\n192.0.2.7 shop.example other.example\n"), 0o644); err != nil {
		d.Fatal(err)
	}
	state, _ := strings.CutPrefix(d.home.Env[0], "ATOLL_STATE_DIR=")
	egress := fmt.Sprintf(`{agents: {defaults: {sandbox: {browser: {egress: {mode: "enforce", allow: ["shop.example:80"], upstream: %q}}}}}}`, proxy)
	if err := os.WriteFile(filepath.Join(state, "atoll.json5"), []byte(egress), 0o600); err != nil {
		d.Fatal(err)
	}
}
