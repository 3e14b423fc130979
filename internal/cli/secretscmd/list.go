package secretscmd

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/secret"
	"github.com/atoll-run/atoll/internal/secret/secretstore"
)

func newListCommand(e *env) *cobra.Command {
	return console.NewListCommand("secrets", "Show the secrets by name: where each comes from and where it goes", func(_ context.Context, asJSON bool) error {
		return e.list(asJSON)
	})
}

// row is a secret that is kept, configured, or both.
type row struct {
	Name       string     `json:"name"`
	Configured bool       `json:"configured"`
	Source     string     `json:"source"` // the first that has a value, or that would be read; "" if none has
	From       []string   `json:"from"`
	Hosts      []string   `json:"hosts"`
	Env        string     `json:"env"`
	Header     string     `json:"header"`
	Kept       *time.Time `json:"kept"` // when a value was kept; nil if none is
}

func (e *env) list(asJSON bool) error {
	settings, err := e.Load()
	if err != nil {
		return e.ConfigError(err, asJSON)
	}
	rows, err := e.rows(settings)
	if err != nil {
		return err
	}
	if asJSON {
		return e.PrintJSON(map[string]any{"secrets": rows})
	}
	e.print(rows)
	return nil
}

// rows returns the secrets of the configuration and those that are kept, by name.
func (e *env) rows(s *provide.Settings) ([]*row, error) {
	kept, err := secretstore.List(dir(s))
	if err != nil {
		return nil, err
	}
	byName := map[string]*row{}
	for _, k := range kept {
		byName[k.Name] = &row{Name: k.Name, Source: "atoll secrets set", From: []string{}, Hosts: []string{}, Kept: &k.Changed}
	}
	configured, err := s.Config.Secrets()
	if err != nil {
		return nil, err
	}
	for i := range configured {
		n := &configured[i]
		sources, err := s.SecretSources(n)
		if err != nil {
			return nil, err
		}
		r := &row{Name: n.Name, Configured: true, From: []string{}, Hosts: n.Hosts, Env: n.Env, Header: n.Header}
		if other := byName[n.Name]; other != nil {
			r.Kept = other.Kept
		}
		r.Source, r.From = describe(s, sources)
		byName[n.Name] = r
	}
	rows := []*row{}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		rows = append(rows, byName[name])
	}
	return rows, nil
}

// describe names the first source that has a value, and all of them. Programs are not
// run and keyrings not opened for that: one that is reached is the one.
func describe(s *provide.Settings, sources []secret.Source) (first string, all []string) {
	for _, source := range sources {
		name := source.Name()
		if f, ok := source.(secret.File); ok && strings.HasPrefix(f.Path, dir(s)+"/") {
			name = "atoll secrets set"
		}
		all = append(all, name)
		if first == "" && hasValue(s, source) {
			first = name
		}
	}
	return first, all
}

func hasValue(s *provide.Settings, source secret.Source) bool {
	switch source := source.(type) {
	case secret.Env:
		return s.Getenv(source.Variable) != ""
	case secret.File:
		_, err := os.Stat(source.Path)
		return err == nil
	}
	return true
}

func (e *env) print(rows []*row) {
	if len(rows) == 0 {
		fmt.Fprintln(e.Out, "No secrets. `atoll secrets set NAME` keeps one.")
		return
	}
	t := console.NewTable("NAME", "SOURCE", "HOSTS", "HEADER", "INSIDE")
	for _, r := range rows {
		source := r.Source
		if source == "" {
			source = "none has a value: " + strings.Join(r.From, ", ")
		}
		t.Add(r.Name, source, console.OrDash(strings.Join(r.Hosts, " ")), console.OrDash(r.Header), console.OrDash(r.Env))
	}
	t.Print(e.Out)
}
