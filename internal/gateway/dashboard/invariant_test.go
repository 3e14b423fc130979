package dashboard_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// served returns everything that is served below the prefix, uncompressed, by its name.
func served(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for name, data := range files(t, "dist") {
		z, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(name, ".gz")] = string(text)
	}
	if len(all) < 10 {
		t.Fatalf("only %d files", len(all))
	}
	return all
}

// The pages are Atoll's own: nothing of OpenClaw's Control UI is served, linked or
// spoken to, neither its elements nor its WebSocket protocol nor its framework.
func TestInvariant_COGNI_NATIVE_UI(t *testing.T) {
	foreign := regexp.MustCompile(`(?i)openclaw|clawdbot|control-ui|lit-html|lit-element|LitElement|litElementVersions|customElements\.define|connect\.challenge|chat\.send`)
	for name, text := range served(t) {
		if found := foreign.FindString(text); found != "" {
			t.Errorf("%s has %q", name, found)
		}
	}
	for _, path := range []string{"/ui/control-ui/", "/ui/__openclaw__/", "/ui/__openclaw__/canvas/", "/ui/chat", "/ui/assets/index.js"} {
		if answer := get(t, http.MethodGet, path, map[string]string{"Accept": "text/html"}); answer.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", path, answer.StatusCode)
		}
	}
}

// The pages know no agent by themselves: the catalogue is what the HTTP interface says.
func TestInvariant_CATALOG_FROM_API(t *testing.T) {
	known := regexp.MustCompile(`(?i)AVAILABLE_GRAPHS|sandbox:[a-z]+|langgraph|claude-code|opencode|\bcodex\b|gemini`)
	asked := false
	for name, text := range served(t) {
		if found := known.FindString(text); found != "" {
			t.Errorf("%s has %q", name, found)
		}
		asked = asked || strings.Contains(text, "/api/v1/ai/agents")
	}
	if !asked {
		t.Error("no page asks for the agents")
	}
}
