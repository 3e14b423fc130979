package deliver

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/model/service"
	"github.com/atoll-run/atoll/internal/policy/variable"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// minVariable is the length from which the value of a variable that is named like
// a secret is taken for one. Shorter ones are words, and would be found in texts.
const minVariable = 16

// hostSecrets are the secrets of this host, as far as they are at hand: none of
// them may leave in a commit, wherever it goes. Sources that run a program, or
// need a key to be opened, are not asked.
func hostSecrets(s *provide.Settings, relay *config.Relay) (known [][]byte) {
	all := slices.Concat(keyValues(s, configuredKeys(s, relay)), writtenSecrets(s), secretVariables(s))
	slices.Sort(all)
	for _, value := range slices.Compact(all) {
		known = append(known, []byte(value))
	}
	return known
}

// configuredKeys are the sources of keys and tokens that the configuration names.
func configuredKeys(s *provide.Settings, relay *config.Relay) (keys []config.LLMKey) {
	add := func(key *config.LLMKey) {
		if key != nil {
			keys = append(keys, *key)
		}
	}
	add(relay.Credential.Token)
	for _, entries := range []map[string]config.RelayEntry{relay.Accounts, relay.Agents} {
		for _, entry := range entries {
			add(entry.Token)
		}
	}
	if models, err := s.Config.LLM(); err == nil {
		for i := range models.Providers {
			keys = append(append(keys, models.Providers[i].Keys...), models.Providers[i].Admin)
		}
	}
	runs, err := s.Config.Runs()
	if err != nil {
		return keys
	}
	for i := range runs.External {
		add(&runs.External[i].Token)
	}
	if runs.OpenClaw.Gateway != nil {
		add(&runs.OpenClaw.Gateway.Token)
	}
	return keys
}

func keyValues(s *provide.Settings, keys []config.LLMKey) (values []string) {
	for _, key := range keys {
		if len(key.Command) > 0 || key.Age != "" {
			continue
		}
		source, err := s.KeySource(key)
		if err != nil {
			continue
		}
		if value, err := source.Read(context.Background()); err == nil {
			values = append(values, value.Reveal())
		}
	}
	return values
}

// writtenSecrets are those that the configuration holds, or names a variable for.
func writtenSecrets(s *provide.Settings) (values []string) {
	secrets := []*config.Secret{s.Config.Web().Search.APIKey}
	if gateway, err := s.Config.Gateway(); err == nil {
		secrets = append(secrets, gateway.Token, gateway.Password)
	}
	for _, one := range secrets {
		if value, err := service.ReadSecret(s, "", one); err == nil && !value.IsEmpty() {
			values = append(values, value.Reveal())
		}
	}
	return values
}

// secretVariables are the values of the variables that are named like secrets.
// The usual token of GitHub is one of them, whatever the remote is.
func secretVariables(s *provide.Settings) (values []string) {
	add := func(name string, least int) {
		if value := strings.TrimSpace(s.Getenv(name)); len(value) >= max(least, 1) && !strings.HasPrefix(value, "/") {
			values = append(values, value)
		}
	}
	for _, name := range []string{config.DefaultRelayToken, "GH_TOKEN", config.DefaultLLMKey} {
		add(name, 1)
	}
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); variable.IsSecret(name) {
			add(name, minVariable)
		}
	}
	return values
}
