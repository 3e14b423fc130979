package proxy

import (
	"errors"

	"github.com/atoll-run/atoll/internal/secret"
)

// provider is a configured provider and the connections to it.
type provider struct {
	*upstream
	name   string
	keys   Keys
	models []string
}

func newProviders(providers []Provider) ([]*provider, error) {
	var places []*provider
	for _, p := range providers {
		if p.Keys == nil {
			return nil, errors.New("a provider of models needs keys")
		}
		p.Upstream.fill()
		u, err := newUpstream(p.Upstream)
		if err != nil {
			return nil, err
		}
		places = append(places, &provider{u, p.Name, p.Keys, p.Models})
	}
	return places, nil
}

// providerFor returns the provider of a model: the one that names it most exactly,
// else the first that names none; nil if there is neither.
func (s *Server) providerFor(model string) (found *provider) {
	best := -1
	for _, p := range s.providers {
		if len(p.models) == 0 && found == nil {
			found = p
		}
		for _, name := range p.models {
			if len(name) > best && matches([]string{name}, model) {
				found, best = p, len(name)
			}
		}
	}
	return found
}

// secrets returns all keys of all providers, and those of the caller's run.
func (x *exchange) secrets() (all []secret.Value) {
	for _, p := range x.s.providers {
		all = append(all, p.keys.Values()...)
	}
	for _, keys := range x.caller.Keys {
		all = append(all, keys.Values()...)
	}
	return all
}

// keys returns the keys for the caller's requests.
func (x *exchange) keys() Keys {
	if own := x.caller.Keys[x.provider.name]; own != nil {
		return own
	}
	return x.provider.keys
}

// setProvider chooses the provider of the request, and with it the time limit.
func (x *exchange) setProvider(p *provider) {
	x.provider = p
	x.end = x.start.Add(p.TotalTimeout)
	if until := x.caller.Until; !until.IsZero() && until.Before(x.end) {
		x.end = until.Add(-x.s.options.Tick) // in time to say so
	}
}

// noProvider says that a model has no provider, and what to do where there is none at
// all.
func (s *Server) noProvider(model string) string {
	if len(s.providers) == 0 {
		return "no model is configured: name a provider in llm.providers, or put its key into the environment of the host's atoll"
	}
	return "no provider of model " + model + " is configured"
}
