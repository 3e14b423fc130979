package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/fakellm"
	"github.com/atoll-run/atoll/internal/model/usage"
)

// Candidate is a model that an agent may ask.
type Candidate struct {
	Name, ID, API     string
	Window, MaxTokens int64
	Plain             bool // it is written that it does not reason
	NoImages          bool // it is written what it takes, and pictures are not among it
}

// Candidates are the models that an agent may ask, the first choice first.
type Candidates []Candidate

// IDs returns the names of the models as their providers know them.
func (c Candidates) IDs() (ids []string) {
	for _, each := range c {
		ids = append(ids, each.ID)
	}
	return ids
}

// The model of the demonstration.
const (
	scriptedProvider = "scripted"
	scriptedModel    = "atoll-demo" // no provider has a model of this name
	ScriptedNotice   = "this is a demonstration: a scripted model answers, which does the same small task whatever it is asked"
)

// ErrNoModel means that nothing says which model is to be asked.
var ErrNoModel = errhint.With(errors.New("no model is configured"),
	"put ANTHROPIC_API_KEY, OPENAI_API_KEY, OPENROUTER_API_KEY or GEMINI_API_KEY into the environment, or name a provider in llm.providers (docs/agent.md); `atoll demo` needs none")

// scriptedCandidate is the scripted model.
var scriptedCandidate = Candidate{Name: scriptedProvider + "/demo", ID: scriptedModel, API: chat.APICompletions, Window: 128 << 10}

// Choice says which models an agent may ask, and through what.
type Choice struct {
	Model string // provider/id; "" is the agent's own
	Proxy *Proxy // the proxy to ask through; nil opens one
	Demo  bool   // the scripted model answers
}

// ForAgent is the proxy of an agent, opened if it has none yet, and the models
// that it may ask there, the first choice first.
func (a *Service) ForAgent(ctx context.Context, agent *config.Agent, o Choice) (m *Proxy, list Candidates, err error) {
	if m = o.Proxy; m == nil {
		if o.Demo {
			m, err = a.openScripted(ctx)
			return m, Candidates{scriptedCandidate}, err
		}
		if err := a.CheckModel(agent, o.Model); err != nil {
			return nil, nil, err
		}
		if m, err = a.OpenConfigured(ctx); err != nil {
			return nil, nil, err
		}
	}
	if m.Scripted() {
		return m, Candidates{scriptedCandidate}, nil
	}
	list, err = a.candidates(&m.Config, agent, o.Model)
	if err != nil && o.Proxy == nil {
		err = errors.Join(err, m.Close())
	}
	return m, list, err
}

// OpenConfigured opens a proxy. Where no model is configured nothing can be asked
// through it.
func (a *Service) OpenConfigured(ctx context.Context) (*Proxy, error) {
	cfg, err := a.modelConfig()
	if err != nil {
		return nil, err
	}
	return a.openProxy(ctx, cfg)
}

// modelConfig is which models there are, without the provider that is assumed
// where nothing is configured and for which there is no key.
func (a *Service) modelConfig() (config.LLM, error) {
	cfg, err := a.Config.LLM()
	if cfg.Default && a.Getenv(config.DefaultLLMKey) == "" {
		cfg.Providers = nil
	}
	return cfg, err
}

// CheckModel refuses a model that there cannot be, before a key is looked for.
func (a *Service) CheckModel(agent *config.Agent, asked string) error {
	cfg, err := a.modelConfig()
	if err != nil {
		return err
	}
	_, err = a.candidates(&cfg, agent, asked)
	return err
}

// Scripted reports whether the model of the demonstration is asked.
func (m *Proxy) Scripted() bool {
	return len(m.Config.Providers) > 0 && m.Config.Providers[0].Name == scriptedProvider
}

// candidates are an agent's primary model and its fallbacks, or the one that was
// asked for instead.
func (a *Service) candidates(cfg *config.LLM, agent *config.Agent, override string) (list Candidates, err error) {
	names := append([]string{agent.Model.Primary}, agent.Model.Fallbacks...)
	if override != "" {
		names = []string{override}
	}
	if names[0] == "" {
		names = []string{cfg.Model}
	}
	switch {
	case names[0] == "" && len(cfg.Providers) == 0 && len(cfg.Unusable) == 0:
		return nil, ErrNoModel
	case names[0] == "":
		return nil, errhint.With(fmt.Errorf("agent %s has no model", agent.ID), "set agents.defaults.model, or give --model PROVIDER/NAME")
	}
	var problems []error
	for _, name := range names {
		c, err := a.candidate(cfg, name)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		list = append(list, c)
	}
	return list, errors.Join(problems...)
}

func (a *Service) candidate(cfg *config.LLM, name string) (Candidate, error) {
	provider, id, ok := strings.Cut(name, "/")
	at := slices.IndexFunc(cfg.Providers, func(p config.LLMProvider) bool { return p.Name == provider })
	if err, unusable := cfg.Unusable[provider]; unusable {
		return Candidate{}, err
	}
	if !ok || at < 0 {
		return Candidate{}, errhint.With(fmt.Errorf("model %q: there is no provider %q", name, provider), "write PROVIDER/NAME; providers are those of llm.providers or models.providers, or anthropic, openai, openrouter and google with their keys in the environment")
	}
	c := Candidate{Name: name, ID: id, API: chat.APICompletions}
	if cfg.Providers[at].Kind == "anthropic" {
		c.API = chat.APIMessages
	}
	for _, m := range a.Config.Models().Providers[provider].Models {
		if m.ID == id {
			c.Window, c.MaxTokens = whole(m.ContextWindow), whole(m.MaxTokens)
			c.Plain = m.Reasoning != nil && !*m.Reasoning
			c.NoImages = len(m.Input) > 0 && !slices.Contains(m.Input, "image")
		}
	}
	return c, nil
}

func whole(f *float64) int64 {
	if f == nil {
		return 0
	}
	return int64(*f)
}

// openScripted is the proxy in front of a scripted model, which listens where
// only this user can reach it.
func (a *Service) openScripted(ctx context.Context) (*Proxy, error) {
	cfg, err := a.Config.LLM()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "atoll-model-")
	if err != nil {
		return nil, err
	}
	socket := filepath.Join(dir, "model.sock")
	server, err := fakellm.Listen(context.WithoutCancel(ctx), "unix", socket, fakellm.Demo())
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	server.BeginAnew()
	end := func() error { return errors.Join(server.Close(), os.RemoveAll(dir)) }
	cfg.Providers = []config.LLMProvider{{
		Name: scriptedProvider, Kind: "openai", URL: "unix:" + socket, Models: []string{scriptedModel},
		Keys: []config.LLMKey{{Literal: config.NewSecret("none-needed")}},
	}}
	m, err := a.openProxy(ctx, cfg)
	if err != nil {
		return nil, errors.Join(err, end())
	}
	// It costs nothing, unless the configuration says otherwise.
	a.prices.Replace(map[string]usage.Price{scriptedModel: {}}, configuredPrices(&cfg))
	m.after = end
	return m, nil
}

// EmbeddingsModel is the model that memories are compared with; "" if there is
// none, or the agent may not ask it, which the notice says.
func (a *Service) EmbeddingsModel(models *Proxy, llm *config.AgentLLM) (c Candidate, notice string, err error) {
	if models.Config.Embeddings == "" || models.Scripted() {
		return Candidate{}, "", nil
	}
	if c, err = a.candidate(&models.Config, models.Config.Embeddings); err != nil {
		return Candidate{}, "", fmt.Errorf("llm.embeddings: %w", err)
	}
	if !Fits(AllowedModels(llm), c.ID) {
		return Candidate{}, "memories are compared by words only: this agent may not call " + c.Name, nil
	}
	return c, "", nil
}
