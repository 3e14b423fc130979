package client

import (
	"context"
	"strings"

	"github.com/atoll-run/atoll/internal/egress/preset"
)

// pipVariables are the variables that pip's indexes can come from.
var pipVariables = []string{"PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CONFIG_FILE", "PYENV_ROOT", "PYENV_VERSION"}

// uvVariables are the variables that uv's indexes can come from.
var uvVariables = []string{"UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX", "UV_EXTRA_INDEX_URL"}

// builtinIndex prints the index that pip uses without configuration, and the
// server of its files.
const builtinIndex = `from pip._internal.models.index import PyPI
print(PyPI.simple_url)
print("https://" + PyPI.file_storage_domain + "/")`

// pip asks pip for its indexes. Where none replaces the one that is built into
// pip, that counts too.
func (r *reader) pip(ctx context.Context) preset.Found {
	text, err := r.output(ctx, pipVariables, "python3", "-I", "-m", "pip", "config", "list")
	addresses, replaced := pipIndexes(text)
	for _, name := range uvVariables {
		for address := range strings.FieldsSeq(r.getenv(name)) {
			addresses = append(addresses, address)
		}
	}
	if err != nil && len(addresses) == 0 {
		return preset.Found{Err: err}
	}
	if !replaced && err == nil {
		builtin, err := r.output(ctx, pipVariables, "python3", "-I", "-c", builtinIndex)
		if err != nil && len(addresses) == 0 {
			return preset.Found{Err: err}
		}
		addresses = append(addresses, strings.Fields(builtin)...)
	}
	return found("pip", addresses)
}

// pipIndexes returns the addresses in the output of pip config list, and
// whether one of them takes the place of the built-in index.
func pipIndexes(text string) (addresses []string, replaced bool) {
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		name := key[strings.LastIndexByte(key, '.')+1:]
		if !ok || name != "index-url" && name != "extra-index-url" {
			continue
		}
		replaced = replaced || name == "index-url"
		value = strings.ReplaceAll(strings.Trim(value, `"'`), `\n`, " ")
		addresses = append(addresses, strings.Fields(value)...)
	}
	return addresses, replaced
}
