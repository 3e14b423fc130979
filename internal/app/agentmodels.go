package app

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

// candidate is a model that an agent may ask.
type candidate struct {
	name, id, api     string
	window, maxTokens int64
	plain             bool // it is written that it does not reason
}

type candidates []candidate

func (c candidates) ids() (ids []string) {
	for _, each := range c {
		ids = append(ids, each.id)
	}
	return ids
}

// The model of the demonstration.
const (
	scriptedProvider = "scripted"
	scriptedModel    = "atoll-demo" // no provider has a model of this name
	scriptedNotice   = "this is a demonstration: a scripted model answers, which does the same small task whatever it is asked"
)

// ErrNoModel means that nothing says which model is to be asked.
var ErrNoModel = errhint.With(errors.New("no model is configured"),
	"put ANTHROPIC_API_KEY, OPENAI_API_KEY or OPENROUTER_API_KEY into the environment, or name a provider in llm.providers (docs/agent.md); `atoll demo` needs none")

// scriptedCandidate is the scripted model.
var scriptedCandidate = candidate{scriptedProvider + "/demo", scriptedModel, chat.APICompletions, 128 << 10, 0, false}

// agentModels is the proxy of an agent, opened if it has none yet, and the models
// that it may ask there, the first choice first.
func (a *App) agentModels(ctx context.Context, agent *config.Agent, o *AgentOptions) (m *Models, list candidates, err error) {
	if m = o.Models; m == nil {
		if o.Demo {
			m, err = a.scriptedModels(ctx)
			return m, candidates{scriptedCandidate}, err
		}
		if err := a.checkModel(agent, o.Model); err != nil {
			return nil, nil, err
		}
		if m, err = a.ownModels(ctx); err != nil {
			return nil, nil, err
		}
	}
	if m.scripted() {
		return m, candidates{scriptedCandidate}, nil
	}
	list, err = a.candidates(&m.config, agent, o.Model)
	if err != nil && o.Models == nil {
		err = errors.Join(err, m.Close())
	}
	return m, list, err
}

// ownModels opens a proxy. Where no model is configured nothing can be asked
// through it.
func (a *App) ownModels(ctx context.Context) (*Models, error) {
	cfg, err := a.modelConfig()
	if err != nil {
		return nil, err
	}
	return a.openModels(ctx, cfg)
}

// modelConfig is which models there are, without the provider that is assumed
// where nothing is configured and for which there is no key.
func (a *App) modelConfig() (config.LLM, error) {
	cfg, err := a.Config.LLM()
	if cfg.Default && a.Getenv(config.DefaultLLMKey) == "" {
		cfg.Providers = nil
	}
	return cfg, err
}

// canAsk refuses an agent that could ask no model, before anything is made for it.
func (a *App) canAsk(o *AgentOptions) error {
	if o.Demo || o.Models != nil {
		return nil
	}
	p, err := a.Plan(o.Who)
	if err != nil {
		return err
	}
	return a.checkModel(p.Agent, o.Model)
}

// checkModel refuses a model that there cannot be, before a key is looked for.
func (a *App) checkModel(agent *config.Agent, asked string) error {
	cfg, err := a.modelConfig()
	if err != nil {
		return err
	}
	_, err = a.candidates(&cfg, agent, asked)
	return err
}

// scripted reports whether the model of the demonstration is asked.
func (m *Models) scripted() bool {
	return len(m.config.Providers) > 0 && m.config.Providers[0].Name == scriptedProvider
}

// candidates are an agent's primary model and its fallbacks, or the one that was
// asked for instead.
func (a *App) candidates(cfg *config.LLM, agent *config.Agent, override string) (list candidates, err error) {
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

func (a *App) candidate(cfg *config.LLM, name string) (candidate, error) {
	provider, id, ok := strings.Cut(name, "/")
	at := slices.IndexFunc(cfg.Providers, func(p config.LLMProvider) bool { return p.Name == provider })
	if err, unusable := cfg.Unusable[provider]; unusable {
		return candidate{}, err
	}
	if !ok || at < 0 {
		return candidate{}, errhint.With(fmt.Errorf("model %q: there is no provider %q", name, provider), "write PROVIDER/NAME; providers are those of llm.providers or models.providers, or anthropic, openai and openrouter with their keys in the environment")
	}
	c := candidate{name: name, id: id, api: chat.APICompletions}
	if cfg.Providers[at].Kind == "anthropic" {
		c.api = chat.APIMessages
	}
	for _, m := range a.Config.Models().Providers[provider].Models {
		if m.ID == id {
			c.window, c.maxTokens = whole(m.ContextWindow), whole(m.MaxTokens)
			c.plain = m.Reasoning != nil && !*m.Reasoning
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

// scriptedModels is the proxy in front of a scripted model, which listens where
// only this user can reach it.
func (a *App) scriptedModels(ctx context.Context) (*Models, error) {
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
	m, err := a.openModels(ctx, cfg)
	if err != nil {
		return nil, errors.Join(err, end())
	}
	// It costs nothing, unless the configuration says otherwise.
	a.money.prices.Replace(map[string]usage.Price{scriptedModel: {}}, configuredPrices(&cfg))
	m.after = end
	return m, nil
}
