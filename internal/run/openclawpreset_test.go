package run

import (
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/agent/preset"
	"github.com/atoll-run/atoll/internal/run/openclaw"
)

// The OpenClaw of a directory is configured as that of a run, but for where it works and
// for how long.
func TestOpenClawPreset(t *testing.T) {
	p, err := preset.Find(preset.Builtin(), "openclaw")
	if err != nil {
		t.Fatal(err)
	}
	entry, err := openclaw.Entry("M", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	want, err := openclaw.Config(openclaw.Options{Mode: openclaw.Ephemeral, Model: "M", Models: []openclaw.Model{entry}, Agents: openclaw.Entries})
	if err != nil {
		t.Fatal(err)
	}
	got := p.Files[0].Content(preset.Values{Model: "M", Workspace: "/workspace", BaseURL: "http://localhost:8080"})
	var a, b map[string]any
	if json.Unmarshal(want, &a) != nil || json.Unmarshal(got, &b) != nil {
		t.Fatalf("no JSON: %s\n%s", want, got)
	}
	delete(a["agents"].(map[string]any)["defaults"].(map[string]any), "timeoutSeconds")
	for _, c := range []map[string]any{a, b} { // each names the proxy differently
		providers := c["models"].(map[string]any)["providers"].(map[string]any)
		for name, provider := range providers {
			delete(providers, name)
			providers["proxy"] = provider
			if c["agents"].(map[string]any)["defaults"].(map[string]any)["model"].(map[string]any)["primary"] != name+"/M" {
				t.Errorf("the model is not one of %s", name)
			}
		}
		delete(c["agents"].(map[string]any)["defaults"].(map[string]any), "model")
	}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Error(diff)
	}
}
