package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
)

// LLM is llm.* with defaults.
type LLM struct {
	Providers []LLMProvider       `json:"providers"` // sorted by name
	Prices    map[string]LLMPrice `json:"prices,omitzero"`
	Unpriced  string              `json:"unpriced"` // "refuse" or "count"
	Account   LLMBudget           `json:"account,omitzero"`
	Day       LLMBudget           `json:"day,omitzero"`
	Timeouts  LLMTimeouts         `json:"timeouts"`
	Limits    LLMLimits           `json:"limits"`
	Billing   LLMBilling          `json:"billing"`
	// Embeddings is the model that memories are compared with, "provider/name".
	Embeddings string `json:"embeddings,omitempty"`
	// AllowMembers and AllowTools are what requests may have besides what is known.
	AllowMembers []string `json:"allowMembers,omitzero"`
	AllowTools   []string `json:"allowTools,omitzero"`
	// Default says that the file names no provider, here or in models, and the
	// environment has no key; FromFile that the file names some.
	Default  bool `json:"-"`
	FromFile bool `json:"-"`
	// Model is asked where an agent has none, "provider/name"; "" if nothing says
	// which.
	Model string `json:"-"`
	// Unusable are the providers of models that cannot be asked from here, and
	// why: a configuration that other programs share may have such.
	Unusable map[string]error `json:"-"`
}

// LLMProvider is one of llm.providers.
type LLMProvider struct {
	Name      string   `json:"name"`
	Kind      string   `json:"kind"` // "litellm", "openai", "anthropic" or "google"
	URL       string   `json:"url"`
	Keys      []LLMKey `json:"keys"`
	Models    []string `json:"models,omitzero"`
	Admin     LLMKey   `json:"adminKey"`
	CAFile    string   `json:"caFile,omitempty"`
	KeyPerRun bool     `json:"keyPerRun"`
	Bearer    bool     `json:"bearer,omitzero"` // the key is a bearer token, whatever the kind
	Beta      string   `json:"beta,omitzero"`   // added to the header anthropic-beta
}

// LLMKey says where a key comes from: exactly one of the ways.
type LLMKey struct {
	Env      string   `json:"env,omitempty"`
	File     string   `json:"file,omitempty"`
	Command  []string `json:"command,omitzero"`
	Age      string   `json:"age,omitempty"`
	Identity string   `json:"identity,omitempty"`
	// Literal is a key that the file holds itself, as those of other programs do.
	Literal *Secret `json:"literal,omitempty"`
}

// LLMTimeouts is llm.timeouts.
type LLMTimeouts struct {
	ConnectMs int `json:"connectMs"`
	HeaderMs  int `json:"headerMs"`
	IdleMs    int `json:"idleMs"`
	TotalMs   int `json:"totalMs"`
}

// LLMLimits is llm.limits.
type LLMLimits struct {
	BodyBytes       int64 `json:"bodyBytes"`
	MaxOutputTokens int   `json:"maxOutputTokens"`
	Choices         int   `json:"choices"`
	Connections     int   `json:"connections"`
	Requests        int   `json:"requests"`
}

// LLMBilling is llm.billing.
type LLMBilling struct {
	GraceSeconds int `json:"graceSeconds"`
	RetrySeconds int `json:"retrySeconds"`
}

// AgentLLM is what one agent may ask of models.
type AgentLLM struct {
	Models     []string  `json:"models,omitzero"` // nil means all
	BodyPolicy string    `json:"bodyPolicy"`      // "strict" or "open"
	Run        LLMBudget `json:"run,omitzero"`
	Session    LLMBudget `json:"session,omitzero"`
	Agent      LLMBudget `json:"agent,omitzero"`
}

// The names of the upstream that there is without configuration.
const (
	DefaultLLMProvider = "litellm"
	DefaultLLMURL      = "http://litellm:4000"
	DefaultLLMKey      = "LITELLM_MASTER_KEY"
)

func builtinLLM() LLM {
	key := LLMKey{Env: DefaultLLMKey}
	return LLM{
		Providers: []LLMProvider{{Name: DefaultLLMProvider, Kind: DefaultLLMProvider, URL: DefaultLLMURL, Keys: []LLMKey{key}, Admin: key}},
		Unpriced:  "refuse",
		Timeouts:  LLMTimeouts{ConnectMs: 10_000, HeaderMs: 600_000, IdleMs: 300_000, TotalMs: 3_600_000},
		Limits:    LLMLimits{BodyBytes: 32 << 20, MaxOutputTokens: 128 << 10, Choices: 4, Connections: 64, Requests: 32},
		Billing:   LLMBilling{GraceSeconds: 60, RetrySeconds: 10},
	}
}

// LLM returns llm.* with defaults.
func (c *Config) LLM() (LLM, error) {
	out, written := builtinLLM(), orEmpty(c.file.LLM)
	if len(written.Providers) > 0 {
		out.Providers, out.FromFile = nil, true
	}
	for _, name := range slices.Sorted(maps.Keys(written.Providers)) {
		p := written.Providers[name]
		provider, err := c.llmProvider(name, &p)
		if err != nil {
			return LLM{}, err
		}
		out.Providers = append(out.Providers, provider)
	}
	out.Prices = maps.Clone(written.Prices)
	if len(written.Providers) == 0 {
		c.adoptModels(&out)
		out.fromEnvironment(c.env)
	}
	set(&out.Unpriced, written.Unpriced)
	set(&out.Embeddings, written.Embed)
	out.AllowMembers, out.AllowTools = slices.Clone(written.AllowMembers), slices.Clone(written.AllowTools)
	budgets := orEmpty(written.Budgets)
	set(&out.Account, budgets.Account)
	set(&out.Day, budgets.Day)
	out.Timeouts.fill(orEmpty(written.Timeouts))
	out.Billing.fill(orEmpty(written.Billing))
	err := out.Limits.fill(orEmpty(written.Limits))
	c.limits.llm(&out)
	return out, err
}

func set[T any](to, written *T) {
	if written != nil {
		*to = *written
	}
}

func (t *LLMTimeouts) fill(f *llmTimeoutsFile) {
	set(&t.ConnectMs, f.ConnectMs)
	set(&t.HeaderMs, f.HeaderMs)
	set(&t.IdleMs, f.IdleMs)
	set(&t.TotalMs, f.TotalMs)
}

func (b *LLMBilling) fill(f *llmBillingFile) {
	set(&b.GraceSeconds, f.GraceSeconds)
	set(&b.RetrySeconds, f.RetrySeconds)
}

func (l *LLMLimits) fill(f *llmLimitsFile) (err error) {
	set(&l.MaxOutputTokens, f.MaxOutputTokens)
	set(&l.Choices, f.Choices)
	set(&l.Connections, f.Connections)
	set(&l.Requests, f.Requests)
	if f.BodyBytes != nil {
		l.BodyBytes, err = f.BodyBytes.Bytes()
	}
	return err
}

func (c *Config) llmProvider(name string, f *llmProviderFile) (LLMProvider, error) {
	p := LLMProvider{Name: name, Kind: DefaultLLMProvider, URL: *f.URL, Models: slices.Clone(f.Models)}
	set(&p.Kind, f.Kind)
	if p.Kind == DefaultLLMProvider && strings.HasPrefix(p.URL, "unix:") {
		return p, errhint.With(fmt.Errorf("llm.providers.%s.url: LiteLLM, which keeps books, cannot be reached at a socket", name), "give its address, or say of what other kind the provider is")
	}
	for i := range f.Keys {
		key, err := c.llmKey(&f.Keys[i])
		if err != nil {
			return p, err
		}
		p.Keys = append(p.Keys, key)
	}
	var err error
	p.Admin = p.Keys[0]
	if f.Admin != nil {
		if p.Admin, err = c.llmKey(f.Admin); err != nil {
			return p, err
		}
	}
	if f.CA != nil {
		p.CAFile, err = c.hostPath(*f.CA)
	}
	set(&p.KeyPerRun, f.Key)
	return p, err
}

func (c *Config) llmKey(f *llmKeyFile) (k LLMKey, err error) {
	k.Command = slices.Clone(f.Command)
	set(&k.Env, f.Env)
	for _, place := range []struct {
		to   *string
		from *string
	}{{&k.File, f.File}, {&k.Age, f.Age}, {&k.Identity, f.Identity}} {
		if place.from == nil {
			continue
		}
		if *place.to, err = c.hostPath(*place.from); err != nil {
			return k, err
		}
	}
	return k, nil
}

// llm merges what an agent may ask of models.
func (m *merge) llm() AgentLLM {
	agent, global := orEmpty(m.agent.LLM), orEmpty(m.global.LLM)
	mine, common := orEmpty(agent.Budgets), orEmpty(global.Budgets)
	return AgentLLM{
		Models:     pickList(m, "llm.models", agent.Models, global.Models, nil),
		BodyPolicy: pick(m, "llm.bodyPolicy", agent.BodyPolicy, global.BodyPolicy, "strict"),
		Run:        pick(m, "llm.budgets.run", mine.Run, common.Run, LLMBudget{}),
		Session:    pick(m, "llm.budgets.session", mine.Session, common.Session, LLMBudget{}),
		Agent:      pick(m, "llm.budgets.agent", mine.Agent, common.Agent, LLMBudget{}),
	}
}
