package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/egress/preset"
)

// npmVariables are the variables that npm's registries can come from.
var npmVariables = []string{"NPM_CONFIG_REGISTRY", "npm_config_registry", "NPM_CONFIG_USERCONFIG", "npm_config_userconfig", "NPM_CONFIG_GLOBALCONFIG", "npm_config_globalconfig", "NPM_CONFIG_PREFIX", "npm_config_prefix", "NVM_DIR", "NVM_BIN"}

// npmRegistry is the registry of an npm whose configuration names none, as npm's
// documentation has it.
const npmRegistry = "https://registry.npmjs.org/"

// npm returns the registries of npm, those of scopes among them, from the files that npm
// reads; npm itself takes long to start. It is asked where its files are not known, as
// behind the programs of version managers; one that does not answer in time counts as
// one without them. Without npm the person's .npmrc is read, which pnpm and others use too.
func (r *reader) npm(ctx context.Context) preset.Found {
	if dir, prefix := r.npmPackage(); dir != "" {
		return found("npm", registries(r.npmSettings(filepath.Join(dir, "npmrc"), prefix), npmRegistry))
	}
	text, err := r.output(ctx, npmVariables, "npm", "config", "list", "--json")
	if err != nil {
		standard := ""
		if errors.Is(err, errSlow) {
			standard = npmRegistry
		}
		f := found("npm", registries(r.npmSettings("", ""), standard))
		if f.Err != nil {
			f.Err = err
		}
		return f
	}
	var settings map[string]jsontext.Value
	if err := json.Unmarshal([]byte(text), &settings); err != nil {
		return preset.Found{Err: fmt.Errorf("npm: %w", err)}
	}
	values := map[string]string{}
	for key, value := range settings {
		var address string
		if json.Unmarshal(value, &address) == nil {
			values[key] = address
		}
	}
	return found("npm", registries(values, ""))
}

// npmPackage returns the directory of the npm that PATH leads to, and the prefix of its
// Node.js; "" if that npm is a program of another kind.
func (r *reader) npmPackage() (dir, prefix string) {
	npm, err := r.program("npm")
	if err != nil {
		return "", ""
	}
	node, err := r.program("node")
	if err != nil {
		return "", ""
	}
	cli, err := filepath.EvalSymlinks(npm)
	bin, errNode := filepath.EvalSymlinks(node)
	dir = filepath.Dir(filepath.Dir(cli))
	if err != nil || errNode != nil || filepath.Base(cli) != "npm-cli.js" || filepath.Base(bin) != "node" || filepath.Base(dir) != "npm" {
		return "", ""
	}
	return dir, filepath.Dir(filepath.Dir(bin))
}

// npmSettings returns the settings of npm: of the environment, the person's file, that of
// the host and that which npm brings, the first that has a key. A project's counts for
// nothing.
func (r *reader) npmSettings(builtin, prefix string) map[string]string {
	values, last := r.npmEnvironment(), r.npmrc(builtin)
	add := func(more map[string]string) {
		for key, value := range more {
			values[key] = cmp.Or(values[key], value)
		}
	}
	add(r.npmrc(cmp.Or(values["userconfig"], last["userconfig"], filepath.Join(r.home, ".npmrc"))))
	if at := cmp.Or(values["prefix"], last["prefix"], r.getenv("PREFIX"), prefix); at != "" {
		add(r.npmrc(cmp.Or(values["globalconfig"], last["globalconfig"], filepath.Join(at, "etc", "npmrc"))))
	}
	add(last)
	return values
}

// npmEnvironment returns the settings of the environment.
func (r *reader) npmEnvironment() map[string]string {
	values := map[string]string{}
	for _, key := range []string{"registry", "userconfig", "globalconfig", "prefix"} {
		value := cmp.Or(r.getenv("npm_config_"+key), r.getenv("NPM_CONFIG_"+strings.ToUpper(key)))
		if value != "" && !r.namesProject(value) {
			values[key] = value
		}
	}
	return values
}

// npmVariable is a variable in a value of an .npmrc.
var npmVariable = regexp.MustCompile(`\$\{[^${}?]+\??\}`)

// npmrc returns the settings of an .npmrc, none if the path is "".
func (r *reader) npmrc(path string) map[string]string {
	if path == "" {
		return nil
	}
	return r.npmLines(r.file(path))
}

// npmLines returns the settings of the text of an .npmrc.
func (r *reader) npmLines(text string) map[string]string {
	values := map[string]string{}
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(line, "=")
		if key = strings.TrimSpace(key); !ok || key == "" || strings.ContainsAny(key[:1], "#;[") {
			continue
		}
		values[key] = npmVariable.ReplaceAllStringFunc(strings.Trim(strings.TrimSpace(value), `"'`), func(v string) string {
			name, optional := strings.CutSuffix(v[2:len(v)-1], "?")
			if set := r.getenv(name); set != "" || optional {
				return set
			}
			return v
		})
	}
	return values
}

// registries returns the addresses of registries among settings, in the order of their
// keys. standard is that of settings that name none.
func registries(settings map[string]string, standard string) (addresses []string) {
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		if strings.HasPrefix(key, "@") && strings.HasSuffix(key, ":registry") {
			addresses = append(addresses, settings[key])
		}
	}
	return append(addresses, cmp.Or(settings["registry"], standard))
}
