package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/config"
)

// FuzzParse checks on any input that it is either refused with problems that
// have a place, or accepted such that every agent resolves and can be printed.
func FuzzParse(f *testing.F) {
	for _, dir := range []string{"testdata/good", "testdata/bad"} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			f.Fatal(err)
		}
		for _, entry := range entries {
			if filepath.Ext(entry.Name()) != ".json5" {
				continue
			}
			if src, err := os.ReadFile(filepath.Join(dir, entry.Name())); err == nil {
				f.Add(src, len(src)%2 == 0)
			}
		}
	}
	f.Fuzz(func(t *testing.T, src []byte, openClaw bool) {
		name := "/project/atoll.json5"
		if openClaw {
			name = "/project/openclaw.json"
		}
		cfg, err := config.Parse(name, src, testEnv())
		if err != nil {
			problems, ok := errors.AsType[config.Problems](err)
			if !ok {
				t.Fatalf("not a list of problems: %v", err)
			}
			for _, p := range problems {
				if p.Message == "" || p.Line < 1 && p.Path != "" {
					t.Fatalf("incomplete: %+v", p)
				}
			}
			return
		}
		for _, id := range cfg.Agents() {
			agent, err := cfg.Resolve(id)
			if err != nil {
				t.Fatalf("agent %q: %v", id, err)
			}
			if _, err := json.Marshal(agent); err != nil {
				t.Fatalf("agent %q: %v", id, err)
			}
		}
		if _, err := cfg.Resolve(cfg.DefaultAgent()); err != nil {
			t.Fatal(err)
		}
	})
}
