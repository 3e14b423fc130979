package sdktest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/fakellm"
	"github.com/atoll-run/atoll/internal/model/service"
	"github.com/atoll-run/atoll/internal/testkit/litellmtest"
	"github.com/atoll-run/atoll/internal/testkit/need"
	"github.com/atoll-run/atoll/internal/testkit/openclawtest"
)

// openclawConfig has one model, in two dialects, at two addresses. OpenClaw is in
// a sandbox already, so it makes none itself.
const openclawConfig = `{
  "models": {"mode": "replace", "providers": {
    "bare": {"baseUrl": "http://localhost:8080", "apiKey": "none-needed", "api": "openai-completions", "models": [{"id": "worker", "name": "worker"}]},
    "messages": {"baseUrl": "http://localhost:8080", "apiKey": "none-needed", "api": "anthropic-messages", "models": [{"id": "worker", "name": "worker"}]}}},
  "plugins": {"enabled": false},
  "gateway": {"mode": "local"},
  "agents": {"defaults": {"model": {"primary": "$PROVIDER/worker"}, "workspace": "/tmp/openclaw/workspace", "skipBootstrap": true, "sandbox": {"mode": "off"}}}
}
`

// The real OpenClaw, which its npm install brings in read-only, does a turn in a
// sandbox without a network: it asks, reads a file that its model wants to see,
// and answers. It takes most of a minute of a processor, so that the other
// dialect is asked for with ATOLL_TEST_AGENTS=1.
func TestOpenClaw(t *testing.T) {
	dir := openclawRoot(t)
	done := fakellm.Say("all done in here")
	done.When = "no network but lo"
	script := fakellm.Script{fakellm.Use("read", `{"path":"note.txt"}`), done}
	d := newDesk(t, fixtureOptions{
		// At the same paths as outside, so that what was compiled there is found.
		backend: "linux", binds: []string{dir + ":" + dir + ":ro", filepath.Join(dir, "../compiled") + ":" + filepath.Join(dir, "../compiled") + ":ro"},
		models: map[string]litellmtest.Model{"worker": {Input: 1e-06, Output: 1e-05, Script: script}},
	})
	g := d.grant("openclaw-1", 0, "worker")
	defer g.Close()
	want := []string{"/v1/chat/completions", "/v1/chat/completions"}
	providers := []string{"bare"}
	if os.Getenv("ATOLL_TEST_AGENTS") != "" {
		want, providers = append(want, "/v1/messages", "/v1/messages"), append(providers, "messages")
	}
	for _, provider := range providers {
		if out := d.openclaw(g, dir, provider); !strings.Contains(out, "all done in here") {
			t.Errorf("%s: the turn did not go as scripted: %v\n%s", provider, d.upstream.Err(), out)
		}
	}
	var paths []string
	for _, r := range d.upstream.Requests() {
		paths = append(paths, r.Path)
	}
	if diff := cmp.Diff(want, paths); diff != "" || d.upstream.Err() != nil {
		t.Errorf("asked (-want +got):\n%s %v", diff, d.upstream.Err())
	}
}

// openclaw runs one turn inside.
func (d *fixture) openclaw(g *service.ModelGrant, dir, provider string) string {
	d.Helper()
	const program = `mkdir -p /tmp/openclaw/workspace && cat >/tmp/openclaw/openclaw.json &&
		echo "no network but $(ls /sys/class/net)" >/tmp/openclaw/workspace/note.txt &&
		exec "$1/node_modules/.bin/node" "$1/node_modules/openclaw/openclaw.mjs" agent --local --agent main --message work --json`
	config := strings.ReplaceAll(openclawConfig, "$PROVIDER", provider)
	return d.exec(g, []byte(config), map[string]string{
		"HOME": "/tmp/openclaw", "NO_COLOR": "1", "OPENCLAW_STATE_DIR": "/tmp/openclaw/" + provider, "OPENCLAW_CONFIG_PATH": "/tmp/openclaw/openclaw.json",
		"OPENCLAW_NO_RESPAWN": "1", "NODE_COMPILE_CACHE": filepath.Join(dir, "../compiled"),
	}, "/bin/sh", "-c", program, "sh", dir)
}

// openclawRoot returns where scripts/openclaw.sh put the current version, and
// makes the directory for compiled code beside it, which is mounted too.
func openclawRoot(t *testing.T) string {
	t.Helper()
	need.Time(t, "it runs OpenClaw")
	if _, err := openclawtest.Find(openclawtest.Current, os.Getenv); err != nil {
		need.Missing(t, err)
	}
	root := openclawtest.Root(openclawtest.Current, os.Getenv)
	if err := os.MkdirAll(filepath.Join(root, "../compiled"), 0o755); err != nil {
		t.Fatal(err)
	}
	return root
}
