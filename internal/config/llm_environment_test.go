package config_test

import (
	"cmp"
	"slices"
	"testing"

	"github.com/atoll-run/atoll/internal/config"
)

// A key in the environment is enough for a provider, unless the file names one or
// there is a key of LiteLLM's. A key is sent nowhere that an address without
// encryption leads to.
//
// Seen to fail with a baseURL that takes every address.
func TestProvidersOfTheEnvironment(t *testing.T) {
	for name, c := range map[string]struct {
		env    map[string]string
		text   string
		model  string
		models []string // the first pattern of each provider, "" for all others
		url    string   // of the first
	}{
		"none":       {env: nil, url: config.DefaultLLMURL, models: []string{""}},
		"anthropic":  {env: map[string]string{"ANTHROPIC_API_KEY": "k"}, model: "anthropic/claude-sonnet-4-5", models: []string{""}, url: "https://api.anthropic.com"},
		"openai":     {env: map[string]string{"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "https://host/v1/"}, model: "openai/gpt-5", models: []string{""}, url: "https://host"},
		"openrouter": {env: map[string]string{"OPENROUTER_API_KEY": "k"}, model: "openrouter/anthropic/claude-sonnet-4.5", models: []string{""}, url: "https://openrouter.ai/api"},
		"all":        {env: map[string]string{"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k", "OPENROUTER_API_KEY": "k"}, model: "anthropic/claude-sonnet-4-5", models: []string{"claude-*", "", "anthropic/*"}, url: "https://api.anthropic.com"},
		"google":     {env: map[string]string{"GEMINI_API_KEY": "k", "GOOGLE_GEMINI_BASE_URL": "https://host/v1beta"}, model: "google/gemini-2.5-pro", models: []string{""}, url: "https://host"},
		"google too": {env: map[string]string{"GEMINI_API_KEY": "k", "OPENROUTER_API_KEY": "k"}, model: "openrouter/anthropic/claude-sonnet-4.5", models: []string{"", "gemini-*"}, url: "https://openrouter.ai/api"},
		"two":        {env: map[string]string{"ANTHROPIC_API_KEY": "k", "OPENROUTER_API_KEY": "k"}, model: "anthropic/claude-sonnet-4-5", models: []string{"claude-*", ""}, url: "https://api.anthropic.com"},
		"local":      {env: map[string]string{"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://127.0.0.1:11434/v1"}, model: "openai/gpt-5", models: []string{""}, url: "http://127.0.0.1:11434"},
		"in clear":   {env: map[string]string{"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://host.example.com/v1"}, model: "openai/gpt-5", models: []string{""}, url: "https://api.openai.com"},
		"litellm":    {env: map[string]string{"OPENAI_API_KEY": "k", "LITELLM_MASTER_KEY": "k"}, models: []string{""}, url: config.DefaultLLMURL},
		"file":       {env: map[string]string{"OPENAI_API_KEY": "k"}, text: `{llm: {providers: {own: {url: "https://own.example.com", kind: "openai", keys: [{env: "X"}]}}}}`, models: []string{""}, url: "https://own.example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			l := environmentLLM(t, c.env, c.text)
			var models []string
			for _, p := range l.Providers {
				models = append(models, slices.Concat(p.Models, []string{""})[0])
			}
			if l.Model != c.model || !slices.Equal(models, c.models) || l.Providers[0].URL != c.url {
				t.Errorf("model %q, %q, %s", l.Model, models, l.Providers[0].URL)
			}
		})
	}
}

func environmentLLM(t *testing.T, variables map[string]string, text string) config.LLM {
	t.Helper()
	env := testEnv()
	env.Getenv = func(name string) string { return variables[name] }
	cfg, err := config.Parse("a", []byte(cmp.Or(text, "{}")), env)
	if err != nil {
		t.Fatal(err)
	}
	l, err := cfg.LLM()
	if err != nil {
		t.Fatal(err)
	}
	return l
}
