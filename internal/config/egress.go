package config

import (
	"net/netip"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// EgressMode says which names a sandbox reaches.
type EgressMode string

// The modes of sandbox.egress.mode.
const (
	EgressOff     EgressMode = "off"
	EgressPublic  EgressMode = "public"
	EgressEnforce EgressMode = "enforce"
	EgressLearn   EgressMode = "learn"
	EgressAsk     EgressMode = "ask"
)

// Egress is sandbox.egress.* of one agent.
type Egress struct {
	Mode     EgressMode        `json:"mode"`
	Allow    []EgressRule      `json:"allow,omitzero"`
	Deny     []EgressDeny      `json:"deny,omitzero"`
	Private  []netip.Prefix    `json:"private,omitzero"`
	Upstream string            `json:"upstream,omitempty"`
	Via      map[string]string `json:"via,omitzero"` // proxies by pattern
	Services []int             `json:"services,omitzero"`
	ProxyEnv bool              `json:"proxyEnv,omitzero"`
	Limits   EgressLimits      `json:"limits"`
	// ModeAt is where the mode is written.
	ModeAt Origin `json:"-"`
	// ModelHosts are the hosts of the configured model providers, which are
	// reached through the model proxy.
	ModelHosts []string `json:"-"`
}

// What happens to a connection that a rule allows.
const (
	EgressSplice  = "splice"
	EgressInspect = "inspect"
	EgressHTTP    = "http"
	EgressTCP     = "tcp"
)

// What git may do over HTTP.
const (
	GitRead  = "read"
	GitWrite = "write"
)

// EgressRule is one entry of sandbox.egress.allow: a host or a preset.
type EgressRule struct {
	Host      string   `json:"host,omitempty"` // canonical, or *. and a canonical name
	Preset    string   `json:"preset,omitempty"`
	Ports     []int    `json:"ports,omitzero"`
	Mode      string   `json:"mode,omitempty"` // "" if it follows from the port and the conditions
	Methods   []string `json:"methods,omitzero"`
	Paths     []string `json:"paths,omitzero"`
	Git       string   `json:"git,omitempty"`
	Secret    string   `json:"secret,omitempty"`
	Upgrade   bool     `json:"upgrade,omitzero"`
	WebSocket bool     `json:"websocket,omitzero"`
	At        Origin   `json:"-"`
}

// EgressDeny is one entry of sandbox.egress.deny.
type EgressDeny struct {
	Host string // canonical, or *. and a canonical name
	Port int    // 0 is every port
	At   Origin
}

// EgressLimits is sandbox.egress.limits. Bytes are those of one connection.
type EgressLimits struct {
	Connections  int   `json:"connections"`
	NewPerMinute int   `json:"newPerMinute"`
	BytesOut     int64 `json:"bytesOut"`
	BytesIn      int64 `json:"bytesIn"`
	IdleSeconds  int   `json:"idleSeconds"`
	LifeSeconds  int   `json:"lifeSeconds"`
}

func builtinEgress() Egress {
	return Egress{Mode: EgressOff, Limits: EgressLimits{
		Connections: 64, NewPerMinute: 600, BytesOut: 256 << 20, BytesIn: 8 << 30, IdleSeconds: 300, LifeSeconds: 3600,
	}}
}

// String is the rule as a file can have it, in its short form if it has one.
func (r EgressRule) String() string {
	if text, ok := r.short(); ok {
		return text
	}
	var parts []string
	add := func(key string, value any, written bool) {
		if text, err := json.Marshal(value, jsontext.SpaceAfterComma(true)); written && err == nil {
			parts = append(parts, key+": "+string(text))
		}
	}
	add("host", r.Host, r.Host != "")
	add("preset", r.Preset, r.Preset != "")
	add("ports", r.Ports, r.Ports != nil)
	add("mode", r.Mode, r.Mode != "")
	add("methods", r.Methods, r.Methods != nil)
	add("paths", r.Paths, r.Paths != nil)
	add("git", r.Git, r.Git != "")
	add("secret", r.Secret, r.Secret != "")
	add("upgrade", r.Upgrade, r.Upgrade)
	add("websocket", r.WebSocket, r.WebSocket)
	return "{ " + strings.Join(parts, ", ") + " }"
}

// ModeIsDefault reports whether no file says what is reached. A caller may then have a
// default of its own; an off that is written stays.
func (e *Egress) ModeIsDefault() bool {
	return (e.Mode == EgressOff || e.Mode == "") && (e.ModeAt.Source == fromDefault || e.ModeAt.Source == "")
}

// Presets returns the names of the presets that rules use, each once.
func (e *Egress) Presets() []string {
	var names []string
	seen := map[string]bool{}
	for i := range e.Allow {
		if name := e.Allow[i].Preset; name != "" && !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names
}
