package openclaw

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Mode is how the program runs.
type Mode string

// The modes: one task in a sandbox of its own, or a service for many sessions.
const (
	Ephemeral Mode = "ephemeral"
	Gateway   Mode = "gateway"
)

const (
	provider = "cogni"
	// placeholder stands where a key would: the proxy adds the real one, which
	// never enters a sandbox.
	placeholder = "proxy-handles-auth"
	workspace   = "/workspace"
	// turnSeconds ends a turn before the sandbox's own limit of 600 s does, so
	// that the program can still say how far it came.
	turnSeconds = 540
	// memoryPlugin has the tools memory_search and memory_get.
	memoryPlugin = "memory-core"
)

// Dialect is how a release writes its agents down. Either is understood by all,
// but the later ones warn about the earlier form.
type Dialect string

// The dialects: that of the first half of 2026, and the one after it.
const (
	List    Dialect = "list"
	Entries Dialect = "entries"
)

// Options are what a configuration depends on.
type Options struct {
	Mode   Mode
	Agents Dialect // "" is List
	Model  string  // the id of one of Models
	Models []Model
	// Slots, of a gateway, is how many providers there are that speak for one
	// run each: cogni-1 to cogni-N, their tokens in ATOLL_SLOT_1 and so on.
	Slots int
	// Headers, of a gateway, says that the provider cogni has a token too, in
	// ATOLL_LLM_TOKEN: the program says whose a call is.
	Headers bool
	// BaseURL is where a gateway finds models; "" is DefaultProxy.
	BaseURL string
}

// DefaultProxy is where the proxy is for a gateway in a container beside it.
const DefaultProxy = "http://llm-proxy-openclaw:8080"

// The variables that a gateway finds tokens in.
const (
	TokenVariable   = "OPENCLAW_GATEWAY_TOKEN"
	HeadersVariable = "ATOLL_LLM_TOKEN"
)

// SlotVariable is the variable with the token of a slot, from 1 on.
func SlotVariable(n int) string { return fmt.Sprintf("ATOLL_SLOT_%d", n) }

// Config writes the configuration, indented.
func Config(o Options) ([]byte, error) {
	if !slices.ContainsFunc(o.Models, func(m Model) bool { return m.ID == o.Model }) {
		return nil, fmt.Errorf("model %q is not in the catalogue (%d models)", o.Model, len(o.Models))
	}
	f := file{
		Agents: agents{
			Defaults: defaults{
				Model:          model{Primary: provider + "/" + o.Model},
				Workspace:      workspace,
				SkipBootstrap:  true,
				TimeoutSeconds: turnSeconds,
				Sandbox:        sandbox{Mode: "off"},
				Heartbeat:      heartbeat{Every: "0"},
			},
		},
		Models:  o.providers(),
		Tools:   tools{Deny: denied(o.Mode)},
		Gateway: gatewayFor(o.Mode),
	}
	if o.Mode == Ephemeral {
		f.Plugins = pluginsOf(o.Agents)
	}
	if o.Mode == Gateway { // nothing is served but the protocol
		f.Browser = &enabled{}
		if o.Agents != Entries {
			f.Canvas = &enabled{} // later releases have none
		}
	}
	f.Agents.setMain(o.Agents)
	return json.Marshal(&f, jsontext.WithIndent("  "), json.Deterministic(true))
}

// pluginsOf has the plugin with the memory tools and no other: all of them for
// one task would cost a minute and half the memory. The earlier releases compile
// a plugin when they load it, which alone takes more than a run has.
func pluginsOf(d Dialect) *plugins {
	if d != Entries {
		return &plugins{}
	}
	return &plugins{Enabled: true, Allow: []string{memoryPlugin}, Slots: &slots{Memory: memoryPlugin}}
}

// providers are the proxy, under as many names as there are to be told apart.
func (o *Options) providers() models {
	all := modelsFor(o.Mode, o.Models)
	if o.Mode != Gateway {
		return all
	}
	entry := all.Providers[provider]
	if o.BaseURL != "" {
		entry.BaseURL = o.BaseURL + "/v1"
	}
	if all.Providers[provider] = entry; o.Headers {
		all.Providers[provider] = entry.withToken(HeadersVariable)
	}
	for n := 1; n <= o.Slots; n++ {
		all.Providers[fmt.Sprintf("%s-%d", provider, n)] = entry.withToken(SlotVariable(n))
	}
	return all
}

// withToken is the same provider with a token of its own.
func (e providerEntry) withToken(variable string) providerEntry {
	e.APIKey = fromVariable(variable)
	return e
}

// setMain writes down the one agent there is.
func (a *agents) setMain(d Dialect) {
	if d == Entries {
		a.Entries = map[string]agent{"main": {Workspace: workspace}}
		return
	}
	a.List = []agent{{ID: "main", Default: true, Workspace: workspace}}
}

func baseURL(m Mode) string {
	if m == Gateway {
		return DefaultProxy + "/v1"
	}
	return "http://localhost:8080/v1"
}

// denied are the tools that have nothing to work on here; a sandbox without a
// network has no use for the web's either.
func denied(m Mode) []string {
	list := []string{"browser", "cron", "gateway", "nodes", "sessions_send", "sessions_spawn", "message"}
	if m == Ephemeral {
		list = append(list, "group:web")
	}
	return list
}

func gatewayFor(m Mode) gateway {
	g := gateway{Mode: "local"}
	if m == Gateway {
		g.Port, g.Bind = 18789, "lan"
		// The pages are not served, but the program warns without an origin from
		// which they may be opened.
		g.ControlUI = &controlUI{AllowedOrigins: []string{"http://localhost:18789"}}
		g.Auth = &auth{Mode: "token", Token: fromVariable(TokenVariable)}
	}
	return g
}

// fromVariable has the program take a value from its environment.
func fromVariable(name string) string { return "${" + name + "}" }

// file is the part of openclaw.json that we write.
type file struct {
	Agents  agents  `json:"agents"`
	Models  models  `json:"models"`
	Tools   tools   `json:"tools"`
	Cron    enabled `json:"cron"`
	Gateway gateway `json:"gateway"`
	// Plugins is nil where those that come with the program are wanted.
	Plugins *plugins `json:"plugins,omitempty"`
	// Browser is nil where there is nothing to control one from.
	Browser *enabled `json:"browser,omitempty"`
	Canvas  *enabled `json:"canvasHost,omitempty"`
}

type (
	agents struct {
		Defaults defaults `json:"defaults"`
		List     []agent  `json:"list,omitempty"`
		// Entries are the agents of a later release, by id.
		Entries map[string]agent `json:"entries,omitempty"`
	}
	defaults struct {
		Model          model     `json:"model"`
		Workspace      string    `json:"workspace"`
		SkipBootstrap  bool      `json:"skipBootstrap"`
		TimeoutSeconds int       `json:"timeoutSeconds"`
		Sandbox        sandbox   `json:"sandbox"`
		Heartbeat      heartbeat `json:"heartbeat"`
	}
	model struct {
		Primary string `json:"primary"`
	}
	sandbox struct {
		Mode string `json:"mode"`
	}
	heartbeat struct {
		Every string `json:"every"`
	}
	agent struct {
		ID        string `json:"id,omitempty"`
		Default   bool   `json:"default,omitzero"`
		Workspace string `json:"workspace"`
	}
	models struct {
		Mode      string                   `json:"mode"`
		Providers map[string]providerEntry `json:"providers"`
	}
	providerEntry struct {
		BaseURL string  `json:"baseUrl"`
		APIKey  string  `json:"apiKey"`
		API     string  `json:"api"`
		Models  []Model `json:"models"`
	}
	tools struct {
		Elevated enabled  `json:"elevated"`
		Deny     []string `json:"deny"`
	}
	plugins struct {
		Enabled bool     `json:"enabled"`
		Allow   []string `json:"allow,omitempty"`
		Slots   *slots   `json:"slots,omitempty"`
	}
	slots struct {
		Memory string `json:"memory"`
	}
	enabled struct {
		Enabled bool `json:"enabled"`
	}
	gateway struct {
		Mode      string     `json:"mode"`
		Port      int        `json:"port,omitzero"`
		Bind      string     `json:"bind,omitempty"`
		ControlUI *controlUI `json:"controlUi,omitempty"`
		Auth      *auth      `json:"auth,omitempty"`
	}
	controlUI struct {
		Enabled        bool     `json:"enabled"`
		AllowedOrigins []string `json:"allowedOrigins"`
	}
	auth struct {
		Mode  string `json:"mode"`
		Token string `json:"token"`
	}
)
