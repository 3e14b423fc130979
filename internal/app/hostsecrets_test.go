package app_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/atoll-run/atoll/internal/relay/deliver"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// TestHostSecretsWhateverTheRemote: with a directory as remote no token is
// needed, and the host's is looked for all the same.
func TestHostSecretsWhateverTheRemote(t *testing.T) {
	t.Setenv("SOME_SERVICE_PASSWORD", "a password of the host")
	t.Setenv("SHORT_TOKEN", "disabled")
	t.Setenv("PLAIN_SETTING", "a setting that is not secret")
	for name, config := range map[string]string{
		"a directory": `{relay: {repository: "/srv/remote.git"}, gateway: {auth: {token: "the gateway's token 0123"}},
			runs: {external: {poet: {url: "https://agents.example.org/poet", token: {env: "POET"}}}}}`,
		"an address": `{relay: {repository: "https://github.com/org/project"}, gateway: {auth: {token: "the gateway's token 0123"}},
			runs: {external: {poet: {url: "https://agents.example.org/poet", token: {env: "POET"}}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "mine.json5")
			if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
				t.Fatal(err)
			}
			env := map[string]string{
				"ATOLL_STATE_DIR": filepath.Join(dir, "state"), "GITHUB_TOKEN": "the token of github", "POET": "the-token-of-the-poet",
				"SOME_SERVICE_PASSWORD": "a password of the host", "SHORT_TOKEN": "disabled", "PLAIN_SETTING": "a setting that is not secret",
			}
			settings, err := provide.Load(provide.LoadOptions{Getenv: func(name string) string { return env[name] }, ConfigPath: file})
			if err != nil {
				t.Fatal(err)
			}
			relays, err := deliver.OpenRelays(settings)
			if err != nil {
				t.Fatal(err)
			}
			var known []string
			for _, value := range relays.Policy().Known {
				known = append(known, string(value))
			}
			want := []string{"a password of the host", "the gateway's token 0123", "the token of github", "the-token-of-the-poet"}
			if !slices.Equal(known, want) {
				t.Errorf("looked for %q, want %q", known, want)
			}
		})
	}
}
