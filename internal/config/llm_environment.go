package config

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/atoll-run/atoll/internal/config/keyprovider"
	"github.com/atoll-run/atoll/internal/secret/secretstore"
)

// fromEnvironment takes the providers whose keys are in the environment or were
// stored, if the file names none and there is no key of LiteLLM's.
func (l *LLM) fromEnvironment(env Environment) {
	if !l.Default || env.Get(DefaultLLMKey) != "" {
		return
	}
	var found []LLMProvider
	var names []string
	for _, known := range keyprovider.All() {
		key, ok := keyIn(env, known.Key)
		if !ok {
			continue
		}
		found, names = append(found, providerOf(&known, env, key)), append(names, known.Name)
		l.Model = cmp.Or(l.Model, known.Name+"/"+known.Model)
	}
	if len(found) == 0 {
		return
	}
	l.Providers, l.Default = found, false
	if rest := keyprovider.Rest(names); rest >= 0 {
		found[rest].Models = nil
	}
}

func providerOf(p *keyprovider.Provider, env Environment, key LLMKey) LLMProvider {
	return LLMProvider{Name: p.Name, Kind: p.Kind, URL: p.Address(env.Get(p.Base)), Keys: []LLMKey{key}, Admin: key, Models: p.Models}
}

// keyIn says where the value of a variable is: in the environment, or stored by that
// name; false if it is in neither.
func keyIn(e Environment, name string) (LLMKey, bool) {
	if e.Get(name) != "" {
		return LLMKey{Env: name}, true
	}
	paths, err := e.Paths()
	file, ok := secretstore.Find(filepath.Join(paths.AtollState, secretstore.Dir), name)
	return LLMKey{File: file}, ok && err == nil
}

// Key says where the value of a variable is, in the environment or stored.
func (c *Config) Key(name string) (LLMKey, bool) { return keyIn(c.env, name) }

// UseKey makes a provider that a key is enough for the only one, with this key. The
// key may be a bearer token that needs beta in the header anthropic-beta.
func (l *LLM) UseKey(c *Config, provider string, key LLMKey, bearer bool, beta string) error {
	known := keyprovider.All()
	at := slices.IndexFunc(known, func(p keyprovider.Provider) bool { return p.Name == provider })
	if at < 0 {
		return fmt.Errorf("a key is not enough for provider %q", provider)
	}
	p := providerOf(&known[at], c.env, key)
	p.Bearer, p.Beta, p.Models = bearer, beta, nil
	l.Providers, l.Default, l.Model = []LLMProvider{p}, false, p.Name+"/"+known[at].Model
	return nil
}
