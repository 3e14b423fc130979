// Package keyprovider lists the providers of models that a key in the environment is
// enough for.
package keyprovider

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Provider is a provider that a key is enough for.
type Provider struct {
	Name, Kind, URL string
	Key, Base       string   // variables of the key and of another address
	Model           string   // that is asked if none is named
	Models          []string // that it has, where another provider has the rest
}

// All returns the providers in the order in which the first one's model is taken.
func All() []Provider {
	return []Provider{
		{"anthropic", "anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "claude-sonnet-4-5", []string{"claude-*"}},
		{"openai", "openai", "https://api.openai.com", "OPENAI_API_KEY", "OPENAI_BASE_URL", "gpt-5", nil},
		{
			"openrouter", "openai", "https://openrouter.ai/api", "OPENROUTER_API_KEY", "OPENROUTER_BASE_URL", "anthropic/claude-sonnet-4.5",
			[]string{"anthropic/*", "openai/*", "google/*", "meta-llama/*", "mistralai/*", "deepseek/*", "qwen/*", "x-ai/*", "moonshotai/*", "z-ai/*", "openrouter/*"},
		},
		{"google", "google", "https://generativelanguage.googleapis.com", "GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL", "gemini-2.5-pro", []string{"gemini-*", "gemma-*"}},
	}
}

// Rest returns which of the providers of these names is asked for whatever the others do
// not name: the only one, or OpenRouter; -1 where OpenAI, which names none, is among
// several, or there is neither.
func Rest(names []string) int {
	switch {
	case len(names) == 1:
		return 0
	case slices.Contains(names, "openai"):
		return -1
	}
	return slices.Index(names, "openrouter")
}

// Address is the address that the environment names, if a key can be sent there: over
// an encrypted connection, or one of this machine; else the provider's own. Client
// libraries write it with a version at its end.
func (p *Provider) Address(named string) string {
	address := strings.TrimSuffix(strings.TrimSuffix(strings.TrimRight(named, "/"), "/v1"), "/v1beta")
	u, err := url.Parse(address)
	switch {
	case named == "" || err != nil:
		return p.URL
	case u.Scheme == "https" || u.Scheme == "unix":
		return address
	case u.Scheme == "http" && isLoopback(u.Hostname()):
		return address
	}
	return p.URL
}

func isLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}
