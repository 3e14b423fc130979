package client

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/egress/preset"
)

// npmVariables are the variables that npm's registries can come from.
var npmVariables = []string{"NPM_CONFIG_REGISTRY", "npm_config_registry", "NPM_CONFIG_USERCONFIG", "npm_config_userconfig", "NPM_CONFIG_GLOBALCONFIG", "npm_config_globalconfig", "NVM_DIR", "NVM_BIN"}

// npm asks npm for its registries, those of scopes among them. Without npm the
// person's .npmrc is read, which pnpm and others use too.
func (r *reader) npm(ctx context.Context) preset.Found {
	text, err := r.output(ctx, npmVariables, "npm", "config", "list", "--json")
	if err != nil {
		f := found("npm", append(npmrc(r.file(filepath.Join(r.home, ".npmrc"))), r.getenv("NPM_CONFIG_REGISTRY"), r.getenv("npm_config_registry")))
		if f.Err != nil {
			f.Err = err
		}
		return f
	}
	var settings map[string]jsontext.Value
	if err := json.Unmarshal([]byte(text), &settings); err != nil {
		return preset.Found{Err: fmt.Errorf("npm: %w", err)}
	}
	var addresses []string
	for key, value := range settings {
		var address string
		if isRegistryKey(key) && json.Unmarshal(value, &address) == nil {
			addresses = append(addresses, address)
		}
	}
	return found("npm", sorted(addresses))
}

// isRegistryKey reports whether a setting of npm is the address of a registry.
func isRegistryKey(key string) bool {
	return key == "registry" || strings.HasPrefix(key, "@") && strings.HasSuffix(key, ":registry")
}

// npmrc returns the registries of an .npmrc.
func npmrc(text string) []string {
	var addresses []string
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(line, "=")
		if ok && isRegistryKey(strings.TrimSpace(key)) {
			addresses = append(addresses, strings.Trim(strings.TrimSpace(value), `"'`))
		}
	}
	return addresses
}
