package config

import (
	"cmp"
	"net/url"
	"strings"
)

// environmentProvider is a provider that a key in the environment is enough for.
type environmentProvider struct {
	name, kind, url string
	key, base       string   // variables
	model           string   // that is asked if none is named
	models          []string // that it has, where another provider has the rest
}

// environmentProviders are in the order in which the first one's model is taken.
func environmentProviders() []environmentProvider {
	return []environmentProvider{
		{"anthropic", "anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "claude-sonnet-4-5", []string{"claude-*"}},
		{"openai", "openai", "https://api.openai.com", "OPENAI_API_KEY", "OPENAI_BASE_URL", "gpt-5", nil},
		{
			"openrouter", "openai", "https://openrouter.ai/api", "OPENROUTER_API_KEY", "OPENROUTER_BASE_URL", "anthropic/claude-sonnet-4.5",
			[]string{"anthropic/*", "openai/*", "google/*", "meta-llama/*", "mistralai/*", "deepseek/*", "qwen/*", "x-ai/*", "moonshotai/*", "z-ai/*", "openrouter/*"},
		},
	}
}

// fromEnvironment takes the providers whose keys are in the environment, if the
// file names none and there is no key of LiteLLM's.
func (l *LLM) fromEnvironment(env Environment) {
	if !l.Default || env.get(DefaultLLMKey) != "" {
		return
	}
	var found []LLMProvider
	for _, known := range environmentProviders() {
		if env.get(known.key) == "" {
			continue
		}
		key := LLMKey{Env: known.key}
		found = append(found, LLMProvider{
			Name: known.name, Kind: known.kind, URL: baseURL(env.get(known.base), known.url), Keys: []LLMKey{key}, Admin: key, Models: known.models,
		})
		l.Model = cmp.Or(l.Model, known.name+"/"+known.model)
	}
	if len(found) == 0 {
		return
	}
	l.Providers, l.Default = found, false
	if last := &found[len(found)-1]; len(found) == 1 || last.Name == "openrouter" && found[len(found)-2].Name != "openai" {
		last.Models = nil // it has whatever the others have not
	}
}

// baseURL is the address that the environment names, if a key can be sent there:
// over an encrypted connection, or one of this machine. Client libraries write it
// with /v1 at its end.
func baseURL(named, otherwise string) string {
	address := strings.TrimSuffix(strings.TrimRight(named, "/"), "/v1")
	u, err := url.Parse(address)
	switch {
	case named == "" || err != nil:
		return otherwise
	case u.Scheme == "https" || u.Scheme == "unix":
		return address
	case u.Scheme == "http" && isLoopback(u.Hostname()):
		return address
	}
	return otherwise
}
