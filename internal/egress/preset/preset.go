// Package preset has named sets of egress rules, a data file each. The hosts of
// package registries are in none of them: they come from the configuration of
// the client on this host, which package client reads.
package preset

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
)

// Preset is one set of rules.
type Preset struct {
	Name  string `json:"-"`
	About string `json:"about"`
	Rules []Rule `json:"rules"`
	// Optional says that rules whose client has no hosts are left out; else they
	// are an error.
	Optional bool `json:"optional"`
}

// Rule is one rule of a preset. Its hosts are those of a client, or written down.
type Rule struct {
	Client  string   `json:"client"`
	Hosts   []string `json:"hosts"`
	Mode    string   `json:"mode"` // of ports with TLS
	Methods []string `json:"methods"`
	Paths   []string `json:"paths"`
	Git     string   `json:"git"`
}

// Endpoint is a server that a client's configuration names.
type Endpoint struct {
	Host  string // canonical
	Port  int
	Plain bool // without TLS
}

// Found is what the configuration of one client says.
type Found struct {
	Endpoints []Endpoint
	Err       error // why there are no endpoints
}

// Hosts has what was found, by client.
type Hosts map[string]Found

//go:embed data/*.json
var files embed.FS

// all reads the data files. They are part of the program, so that a mistake in
// one is the program's; a test reads them all.
var all = sync.OnceValue(func() map[string]*Preset {
	presets := map[string]*Preset{}
	entries, err := files.ReadDir("data")
	if err != nil {
		panic(err)
	}
	for _, entry := range entries {
		text, err := files.ReadFile(path.Join("data", entry.Name()))
		p := &Preset{Name: strings.TrimSuffix(entry.Name(), ".json")}
		if err == nil {
			err = json.Unmarshal(text, p, json.RejectUnknownMembers(true))
		}
		if err != nil {
			panic(fmt.Sprintf("preset %s: %v", entry.Name(), err))
		}
		presets[p.Name] = p
	}
	return presets
})

// Names returns the names of all presets, sorted.
func Names() []string {
	var names []string
	for name := range all() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Known reports whether there is a preset of this name.
func Known(name string) bool { return all()[name] != nil }

// Get returns a preset; ok is false if there is none of this name.
func Get(name string) (p Preset, ok bool) {
	if known := all()[name]; known != nil {
		return *known, true
	}
	return Preset{}, false
}

// Clients returns the clients whose configuration the presets need, each once.
func Clients(names []string) []string {
	var clients []string
	for _, name := range names {
		p, _ := Get(name)
		for _, r := range p.Rules {
			if r.Client != "" && !slices.Contains(clients, r.Client) {
				clients = append(clients, r.Client)
			}
		}
	}
	return clients
}
