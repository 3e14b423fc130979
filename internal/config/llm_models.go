package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
)

// adoptModels takes the providers of models.providers, which is where OpenClaw's
// users have theirs, for those of llm, if that names none.
func (c *Config) adoptModels(out *LLM) {
	providers := c.Models().Providers
	out.Default, out.FromFile = len(providers) == 0, len(providers) > 0
	var adopted []LLMProvider
	for _, name := range slices.Sorted(maps.Keys(providers)) {
		p := providers[name]
		provider, err := adoptProvider(name, &p)
		if err != nil {
			if out.Unusable == nil {
				out.Unusable = map[string]error{}
			}
			out.Unusable[name] = err
			continue
		}
		adopted = append(adopted, provider)
		out.adoptPrices(p.Models)
	}
	if len(adopted) > 0 {
		out.Providers = adopted
	}
}

func adoptProvider(name string, p *Provider) (LLMProvider, error) {
	out := LLMProvider{Name: name, Kind: "openai", URL: strings.TrimSuffix(strings.TrimRight(p.BaseURL, "/"), "/v1")}
	switch p.API {
	case "", "openai-completions", "openai-responses":
	case "anthropic-messages":
		out.Kind = "anthropic"
	case "google-generative-ai":
		out.Kind, out.URL = "google", strings.TrimSuffix(out.URL, "/v1beta")
	default:
		return out, errhint.With(fmt.Errorf("models.providers.%s.api: %s is not spoken here", name, p.API), "known are openai-completions, openai-responses, anthropic-messages and google-generative-ai")
	}
	if p.BaseURL == "" {
		return out, fmt.Errorf("models.providers.%s.baseUrl is missing", name)
	}
	key, err := adoptKey(name, p.APIKey)
	if err != nil {
		return out, err
	}
	out.Keys, out.Admin = []LLMKey{key}, key
	for _, m := range p.Models {
		out.Models = append(out.Models, m.ID)
	}
	return out, nil
}

func adoptKey(name string, s *Secret) (LLMKey, error) {
	switch {
	case s == nil:
		return LLMKey{}, errhint.With(fmt.Errorf("models.providers.%s.apiKey is missing", name), "name where the key is kept: apiKey: {source: \"env\", id: \"NAME\"}")
	case s.Ref == nil:
		return LLMKey{Literal: s}, nil
	case s.Ref.Source == "env":
		return LLMKey{Env: s.Ref.ID}, nil
	}
	return LLMKey{}, errhint.With(fmt.Errorf("models.providers.%s.apiKey: keys in %q cannot be read here", name, s.Ref.Source), "keep it in a variable, or use llm.providers, which reads files, commands and encrypted files")
}

// adoptPrices takes the prices of a catalogue. A price of zero is no price: the
// catalogue leaves the counting to the provider.
func (l *LLM) adoptPrices(models []Model) {
	for _, m := range models {
		if m.Cost == nil || m.Cost.Input+m.Cost.Output == 0 {
			continue
		}
		if _, written := l.Prices[m.ID]; written {
			continue
		}
		if l.Prices == nil {
			l.Prices = map[string]LLMPrice{}
		}
		read, write := m.Cost.CacheRead, m.Cost.CacheWrite
		l.Prices[m.ID] = LLMPrice{Input: m.Cost.Input, Output: m.Cost.Output, CachedInput: &read, CacheWrite: &write}
	}
}
