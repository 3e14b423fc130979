package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/secret/secretstore"
)

// parsed reads a configuration of a home of its own.
func parsed(t *testing.T, home, text string, env map[string]string) *config.Config {
	t.Helper()
	cfg, err := config.Parse(filepath.Join(home, "atoll.json5"), []byte(text), config.Environment{Home: home, Cwd: home, Getenv: func(name string) string { return env[name] }})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestStoredSecrets(t *testing.T) {
	home := t.TempDir()
	state := filepath.Join(home, ".atoll")
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	if llm, err := parsed(t, home, "{}", nil).LLM(); err != nil || !llm.Default {
		t.Fatalf("%+v, %v", llm, err)
	}
	for _, value := range []string{"sk-ant-api-first", "sk-ant-api-second"} {
		if err := secretstore.Keep(filepath.Join(state, secretstore.Dir), "ANTHROPIC_API_KEY", value); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(state, secretstore.Dir, "ANTHROPIC_API_KEY")
	info, err := os.Stat(file)
	if text, _ := os.ReadFile(file); err != nil || info.Mode().Perm() != 0o600 || string(text) != "sk-ant-api-second\n" {
		t.Errorf("%v, %v, %q", info, err, text)
	}
	cfg := parsed(t, home, "{}", nil)
	llm, err := cfg.LLM()
	if err != nil || llm.Default || llm.FromFile || len(llm.Providers) != 1 || llm.Providers[0].Keys[0].File != file {
		t.Errorf("%+v, %v", llm, err)
	}
	if key, ok := parsed(t, home, "{}", map[string]string{"ANTHROPIC_API_KEY": "x"}).Key("ANTHROPIC_API_KEY"); !ok || key.Env == "" {
		t.Errorf("the environment does not go before: %+v", key)
	}
	if key, ok := cfg.Key("OPENAI_API_KEY"); ok {
		t.Errorf("found %+v", key)
	}
}

// A stored secret that is a link could be any file.
func TestLinksAreNoStoredSecrets(t *testing.T) {
	home := t.TempDir()
	dir := filepath.Join(home, ".atoll", secretstore.Dir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/hostname", filepath.Join(dir, "OPENAI_API_KEY")); err != nil {
		t.Fatal(err)
	}
	if key, ok := parsed(t, home, "{}", nil).Key("OPENAI_API_KEY"); ok {
		t.Errorf("taken: %+v", key)
	}
}

func TestUseKey(t *testing.T) {
	cfg := parsed(t, t.TempDir(), "{}", map[string]string{"OPENAI_API_KEY": "o", "ANTHROPIC_BASE_URL": "http://127.0.0.1:9"})
	llm, err := cfg.LLM()
	if err != nil {
		t.Fatal(err)
	}
	key := config.LLMKey{Env: "CLAUDE_CODE_OAUTH_TOKEN"}
	if err := llm.UseKey(cfg, "anthropic", key, true, "oauth-2025-04-20"); err != nil {
		t.Fatal(err)
	}
	p := llm.Providers[0]
	if len(llm.Providers) != 1 || p.Name != "anthropic" || p.URL != "http://127.0.0.1:9" || !p.Bearer || p.Beta != "oauth-2025-04-20" || p.Keys[0].Env != key.Env || p.Models != nil {
		t.Errorf("%+v", llm.Providers)
	}
	if llm.UseKey(cfg, "nobody", key, false, "") == nil {
		t.Error("an unknown provider was taken")
	}
	file := parsed(t, t.TempDir(), `{llm: {providers: {own: {url: "https://models.example", keys: [{env: "K"}]}}}}`, nil)
	if llm, err := file.LLM(); err != nil || !llm.FromFile {
		t.Errorf("%+v, %v", llm, err)
	}
}
