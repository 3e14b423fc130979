package run_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/run"
)

// registry is every variant that there is without configuration, and the presets.
func registry(t *testing.T) []run.Variant {
	t.Helper()
	list := []run.Variant{run.Agent(run.AgentOptions{Program: "/bin/atoll"}), run.OpenClaw(run.OpenClawOptions{Image: "i"})}
	for _, name := range []string{"claude-code", "codex"} {
		c, ok := run.Preset(name)
		if c.ID = name; !ok || len(c.Check()) > 0 {
			t.Fatalf("%s: %v", name, c.Check())
		}
		list = append(list, c.Variant())
	}
	return list
}

// Every agent is a complete entry of one registry, and no other agent can be asked.
// Seen to fail when Find returns the first entry for an unknown id, and when an
// entry has no Read.
func TestInvariant_AGENT_VARIANTS_IN_REGISTRY(t *testing.T) {
	list, ids := registry(t), map[string]bool{}
	for _, v := range list {
		found, err := run.Find(list, v.ID)
		if err != nil || found.ID != v.ID || ids[v.ID] {
			t.Errorf("%s: %v", v.ID, err)
		}
		ids[v.ID] = true
		if v.Argv == nil || v.Env == nil || v.Files == nil || v.Read == nil || v.Timeout <= 0 || v.Memory <= 0 || v.Margin >= v.Timeout || v.Description == "" {
			t.Errorf("%s is not whole: %+v", v.ID, v)
		}
	}
	var f *run.Failure
	if _, err := run.Find(list, "sandbox:nobody"); !errors.As(err, &f) || f.Code != "unknown_variant" {
		t.Errorf("error %v", err)
	}
}

// No gateway is started where there is one task and no network: the program is
// told to work by itself, and its configuration has nothing to listen on. Seen to
// fail when the arguments lack --local, and with the configuration of a gateway.
func TestInvariant_EPHEMERAL_NO_GATEWAY(t *testing.T) {
	for _, v := range registry(t)[:2] {
		argv, err := v.Argv(job("task"))
		if err != nil || !slices.Contains(argv, "agent") || !slices.Contains(argv, "--local") || slices.Contains(argv, "gateway") {
			t.Errorf("%s: %q, %v", v.ID, argv, err)
		}
		for name, value := range v.Env(job("task")) {
			if strings.Contains(name, "GATEWAY") || strings.Contains(value, "18789") {
				t.Errorf("%s: %s=%s", v.ID, name, value)
			}
		}
		gateway, _ := configOf(t, v)["gateway"].(map[string]any)
		delete(gateway, "mode")
		if len(gateway) > 0 {
			t.Errorf("%s listens: %v", v.ID, gateway)
		}
	}
}

// configOf is the configuration that a variant's program finds.
func configOf(t *testing.T, v run.Variant) (config map[string]any) {
	t.Helper()
	files, err := v.Files(job("task"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.HasSuffix(f.Path, "openclaw.json") || strings.HasSuffix(f.Path, "atoll.json5") {
			if err := json.Unmarshal(f.Data, &config); err != nil {
				t.Fatal(err)
			}
		}
	}
	return config
}

// The only provider inside is the proxy, and what stands for a key is none. Seen
// to fail with models.mode merge, and with another provider beside.
func TestInvariant_COGNI_IS_MODEL_ROUTER(t *testing.T) {
	for _, v := range registry(t)[:2] {
		models, _ := configOf(t, v)["models"].(map[string]any)
		providers, _ := models["providers"].(map[string]any)
		cogni, _ := providers["cogni"].(map[string]any)
		url, _ := cogni["baseUrl"].(string)
		if models["mode"] != "replace" || len(providers) != 1 || cogni["apiKey"] != "proxy-handles-auth" ||
			url != "http://127.0.0.1:8080/v1" && url != "http://localhost:8080/v1" {
			t.Errorf("%s: %v", v.ID, models)
		}
	}
	for _, v := range registry(t)[2:] {
		for name, value := range v.Env(job("task")) {
			if strings.HasSuffix(name, "_KEY") && value != "proxy-handles-auth" || strings.HasSuffix(name, "_BASE_URL") && value != "http://127.0.0.1:8080" {
				t.Errorf("%s: %s=%s", v.ID, name, value)
			}
		}
	}
}
