package config_test

import (
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/config"
)

func llmOf(t *testing.T, text string) (config.LLM, error) {
	t.Helper()
	cfg, err := config.Parse("a", []byte(text), testEnv())
	if err != nil {
		t.Fatal(err)
	}
	return cfg.LLM()
}

// Providers that OpenClaw's users have already are used as they are; llm's own
// go before them.
func TestProvidersOfModels(t *testing.T) {
	const models = `models:{providers:{
		o:{baseUrl:"https://o.invalid/v1/",apiKey:"k",models:[{id:"m",cost:{input:1,output:2,cacheRead:0.5}},{id:"free",cost:{input:0,output:0}}]},
		a:{baseUrl:"https://a.invalid",api:"anthropic-messages",apiKey:{source:"env",id:"K"},models:[]},
		g:{baseUrl:"https://g.invalid/v1beta",api:"google-generative-ai",apiKey:"k",models:[{id:"gemini-x"}]}}}`
	l, err := llmOf(t, "{"+models+"}")
	if err != nil || l.Default || len(l.Providers) != 3 {
		t.Fatalf("%+v, %v", l, err)
	}
	a, g, o := l.Providers[0], l.Providers[1], l.Providers[2]
	if a.Kind != "anthropic" || a.Keys[0].Env != "K" || o.Kind != "openai" || o.URL != "https://o.invalid" || o.Keys[0].Literal.Reveal() != "k" || o.Models[0] != "m" {
		t.Errorf("%+v, %+v", a, o)
	}
	if g.Kind != "google" || g.URL != "https://g.invalid" || g.Models[0] != "gemini-x" {
		t.Errorf("%+v", g)
	}
	if price, ok := l.Prices["m"]; !ok || price.Output != 2 || *price.CachedInput != 0.5 {
		t.Errorf("price %+v", price)
	}
	if _, ok := l.Prices["free"]; ok {
		t.Error("zeros were taken for a price")
	}
	l, err = llmOf(t, `{llm:{providers:{x:{url:"https://x.invalid",keys:[{env:"X"}]}}},`+models+`}`)
	if err != nil || len(l.Providers) != 1 || l.Providers[0].Name != "x" {
		t.Errorf("%+v, %v", l.Providers, err)
	}
	if l, err := llmOf(t, "{}"); err != nil || !l.Default {
		t.Errorf("%+v, %v", l, err)
	}
}

// What cannot be asked from here is no error until somebody asks for it: other
// programs may use it.
func TestProvidersOfModelsThatCannotBeUsed(t *testing.T) {
	for text, want := range map[string]string{
		`{models:{providers:{p:{baseUrl:"https://p.invalid",apiKey:"k",api:"ollama"}}}}`:                     "ollama is not spoken here",
		`{models:{providers:{p:{apiKey:"k"}}}}`:                                                              "baseUrl is missing",
		`{models:{providers:{p:{baseUrl:"https://p.invalid"}}}}`:                                             "apiKey is missing",
		`{models:{providers:{p:{baseUrl:"https://p.invalid",apiKey:{source:"store",id:"x",provider:"y"}}}}}`: "cannot be read here",
	} {
		l, err := llmOf(t, text)
		if err != nil || l.Unusable["p"] == nil || !strings.Contains(l.Unusable["p"].Error(), want) {
			t.Errorf("%s: %+v, %v", text, l, err)
		}
	}
}

// A provider may be at a socket, but not one that keeps books.
func TestProvidersAtSockets(t *testing.T) {
	l, err := llmOf(t, `{llm:{embeddings:"s/e",providers:{s:{kind:"openai",url:"unix:/run/model.sock",keys:[{env:"X"}]}}}}`)
	if err != nil || l.Providers[0].URL != "unix:/run/model.sock" || l.Embeddings != "s/e" {
		t.Errorf("%+v, %v", l, err)
	}
	if _, err := llmOf(t, `{llm:{providers:{s:{url:"unix:/run/model.sock",keys:[{env:"X"}]}}}}`); err == nil || !strings.Contains(err.Error(), "keeps books") {
		t.Errorf("%v", err)
	}
}
