package config

import (
	"maps"
	"path/filepath"
	"slices"

	"github.com/atoll-run/atoll/internal/secret/secretstore"
)

// NamedSecret is one entry of secrets: a value that sandboxes use and never see.
type NamedSecret struct {
	Name   string         `json:"name"`
	From   []SecretSource `json:"from"`  // the first that has a value counts
	Hosts  []string       `json:"hosts"` // patterns of the hosts that are sent the value
	Env    string         `json:"env,omitempty"`
	Header string         `json:"header"`
	Form   string         `json:"form"` // of the header; {} stands for the value
	At     Origin         `json:"-"`
}

// SecretSource says where a value comes from: exactly one of the ways.
type SecretSource struct {
	Env      string   `json:"env,omitempty"`
	File     string   `json:"file,omitempty"` // absolute
	Command  []string `json:"command,omitzero"`
	Age      string   `json:"age,omitempty"`
	Identity string   `json:"identity,omitempty"`
	Keyring  string   `json:"keyring,omitempty"`
}

// What a secret is put into unless the file says otherwise.
const (
	DefaultSecretHeader = "Authorization"
	DefaultSecretForm   = "Bearer {}"
)

// Secrets returns the entries of secrets, sorted by name. OpenClaw's own file
// has none.
func (c *Config) Secrets() ([]NamedSecret, error) {
	var all []NamedSecret
	for _, name := range slices.Sorted(maps.Keys(c.file.Secrets)) {
		f := c.file.Secrets[name]
		s, err := c.namedSecret(name, &f)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

func (c *Config) namedSecret(name string, f *secretFile) (s NamedSecret, err error) {
	at := (*path)(nil).child("secrets").child(name)
	s = NamedSecret{
		Name: name, Hosts: slices.Clone(f.Hosts), Header: DefaultSecretHeader, Form: DefaultSecretForm,
		At: Origin{Source: fromGlobal, Path: at.String(), Line: c.lineOf(at)},
	}
	set(&s.Env, f.Env)
	set(&s.Header, f.Header)
	set(&s.Form, f.Form)
	for i := range f.From {
		source, err := c.secretSource(&f.From[i])
		if err != nil {
			return s, err
		}
		s.From = append(s.From, source)
	}
	if len(s.From) == 0 {
		var kept string
		kept, err = c.stateFile(filepath.Join(secretstore.Dir, name))
		s.From = []SecretSource{{File: kept}}
	}
	return s, err
}

func (c *Config) secretSource(f *secretSourceFile) (s SecretSource, err error) {
	key, err := c.llmKey(&llmKeyFile{Env: f.Env, File: f.File, Command: f.Command, Age: f.Age, Identity: f.Identity})
	s = SecretSource{Env: key.Env, File: key.File, Command: key.Command, Age: key.Age, Identity: key.Identity}
	set(&s.Keyring, f.Keyring)
	return s, err
}
