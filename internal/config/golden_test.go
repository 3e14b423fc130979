package config_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/config"
)

var update = flag.Bool("update", false, "write the golden files anew")

// testEnv is an environment with nothing of the machine in it.
func testEnv() config.Environment {
	vars := map[string]string{"LITELLM_KEY": "sk-very-secret", "PROXY": "http://proxy.test:3128"}
	return config.Environment{
		Getenv: func(name string) string { return vars[name] },
		Home:   "/home/user",
		Cwd:    "/project",
	}
}

// inputs returns the files of a directory and of the directories in it.
func inputs(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	for _, pattern := range []string{"*.json5", "*/openclaw.json"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, found...)
	}
	if len(names) == 0 {
		t.Fatalf("no inputs in %s", dir)
	}
	return names
}

// parse parses a test input as if it were in the project's directory.
func parse(t *testing.T, name string) (*config.Config, error) {
	t.Helper()
	src, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return config.Parse("/project/"+filepath.Base(name), src, testEnv())
}

func TestGoldenGood(t *testing.T) {
	for _, name := range inputs(t, "testdata/good") {
		t.Run(name, func(t *testing.T) {
			cfg, err := parse(t, name)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, name+".golden", summary(t, cfg))
		})
	}
}

func TestGoldenBad(t *testing.T) {
	for _, name := range inputs(t, "testdata/bad") {
		t.Run(name, func(t *testing.T) {
			_, err := parse(t, name)
			if err == nil {
				t.Fatal("accepted")
			}
			for _, secret := range []string{"-secret", "secret-", ":secret", "sk-very"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("the message shows a secret: %v", err)
				}
			}
			compare(t, name+".golden", err.Error()+"\n")
		})
	}
}

// summary is everything that a Config has to tell, as JSON. Origins of built-in
// values are left out: they are the rest.
func summary(t *testing.T, cfg *config.Config) string {
	t.Helper()
	var agents []*config.Agent
	for _, id := range cfg.Agents() {
		agent, err := cfg.Resolve(id)
		if err != nil {
			t.Fatal(err)
		}
		for key, origin := range agent.Origins {
			if origin.Source == "default" {
				delete(agent.Origins, key)
			}
		}
		agents = append(agents, agent)
	}
	var warnings []string
	for _, w := range cfg.Warnings() {
		warnings = append(warnings, w.String())
	}
	llm, err := cfg.LLM()
	if err != nil {
		t.Fatal(err)
	}
	relay, err := cfg.Relay()
	if err != nil {
		t.Fatal(err)
	}
	gateway, err := cfg.Gateway()
	if err != nil {
		t.Fatal(err)
	}
	secrets, err := cfg.Secrets()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]any{
		"llm":    llm,
		"agents": agents, "default": cfg.DefaultAgent(), "session": cfg.Session(), "gateway": gateway,
		"models": cfg.Models(), "ignored": cfg.Ignored(), "warnings": warnings,
	}
	if len(secrets) > 0 {
		all["secrets"] = secrets
	}
	if relay.Repository != "" {
		all["relay"] = relay
	}
	text, err := json.Marshal(all, jsontext.WithIndent("  "), json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}

func compare(t *testing.T, golden, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatalf("%v (go test -update writes it)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("differs from %s (- want, + got):\n%s", golden, diff)
	}
}
