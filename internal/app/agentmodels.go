package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/advice"
	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/scripted"
	"github.com/atoll-run/atoll/internal/usage"
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

// The model that there is without configuration.
const (
	scriptedProvider = "scripted"
	scriptedModel    = "demo"
	scriptedNotice   = "no model is configured: a scripted model answers, which does the same small task whatever it is asked (models.providers or llm.providers in the configuration name real ones)"
)

// scriptedCandidate is the scripted model.
var scriptedCandidate = candidate{scriptedProvider + "/" + scriptedModel, scriptedModel, chat.APICompletions, 128 << 10, 0, false}

// agentModels is the proxy of an agent, opened if it has none yet, and the models
// that it may ask there, the first choice first.
func (a *App) agentModels(ctx context.Context, agent *config.Agent, o *AgentOptions) (m *Models, list candidates, err error) {
	if m = o.Models; m == nil {
		if err := a.checkModel(agent, o.Model); err != nil {
			return nil, nil, err
		}
		if m, err = a.ownModels(ctx, o.Model); err != nil {
			return nil, nil, err
		}
	}
	if m.scripted() && (o.Model == "" || strings.HasPrefix(o.Model, scriptedProvider+"/")) {
		return m, candidates{scriptedCandidate}, nil
	}
	list, err = a.candidates(&m.config, agent, o.Model)
	if err != nil && o.Models == nil {
		err = errors.Join(err, m.Close())
	}
	return m, list, err
}

// ownModels opens a proxy. Without any configuration it is in front of the
// scripted model, unless another was asked for.
func (a *App) ownModels(ctx context.Context, asked string) (*Models, error) {
	cfg, err := a.Config.LLM()
	if err != nil {
		return nil, err
	}
	if a.isScripted(&cfg, asked) {
		return a.scriptedModels(ctx, cfg)
	}
	return a.openModels(ctx, cfg)
}

func (a *App) isScripted(cfg *config.LLM, asked string) bool {
	return cfg.Default && a.getenv(config.DefaultLLMKey) == "" && (asked == "" || strings.HasPrefix(asked, scriptedProvider+"/"))
}

// checkModel refuses a model that there cannot be, before a key is looked for.
func (a *App) checkModel(agent *config.Agent, asked string) error {
	cfg, err := a.Config.LLM()
	if err != nil || a.isScripted(&cfg, asked) {
		return err
	}
	_, err = a.candidates(&cfg, agent, asked)
	return err
}

// scripted reports whether nobody real is asked.
func (m *Models) scripted() bool { return m.config.Providers[0].Name == scriptedProvider }

// candidates are an agent's primary model and its fallbacks, or the one that was
// asked for instead.
func (a *App) candidates(cfg *config.LLM, agent *config.Agent, override string) (list candidates, err error) {
	names := append([]string{agent.Model.Primary}, agent.Model.Fallbacks...)
	if override != "" {
		names = []string{override}
	}
	if names[0] == "" {
		return nil, advice.With(fmt.Errorf("agent %s has no model", agent.ID), "set agents.defaults.model, or give --model PROVIDER/NAME")
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
		return candidate{}, advice.With(fmt.Errorf("model %q: there is no provider %q", name, provider), "write PROVIDER/NAME; providers are those of llm.providers or models.providers")
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
func (a *App) scriptedModels(ctx context.Context, cfg config.LLM) (*Models, error) {
	dir, err := os.MkdirTemp("", "atoll-model-")
	if err != nil {
		return nil, err
	}
	socket := filepath.Join(dir, "model.sock")
	server, err := scripted.Listen(context.WithoutCancel(ctx), "unix", socket, scripted.Demo())
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	server.Anew = true
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
