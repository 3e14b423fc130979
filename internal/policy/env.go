package policy

import (
	"maps"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/lazyregexp"
	"github.com/atoll-run/atoll/internal/policy/variable"
)

// longValue is the length from which a variable is suspicious.
const longValue = 32768

// strictNames are all that strict mode lets in, besides LC_*.
var strictNames = []string{"LANG", "PATH", "HOME", "USER", "SHELL", "TERM", "TZ", "NODE_ENV"}

var looksEncoded = lazyregexp.New(`^[A-Za-z0-9+/=]{80,}$`)

// EnvRequest is what wants to become the environment of a sandbox or of one
// command in it. Later layers win: inherited, configured, call.
type EnvRequest struct {
	Inherited  map[string]string // from the host; its PATH never enters
	Configured map[string]string // docker.env
	Call       map[string]string // given with one command
	// AllowSecret names variables that enter although their names are those of
	// secrets (dangerouslyAllowSecretEnv).
	AllowSecret []string
	Strict      bool // let in only what every program needs
}

// Env is what a sandbox gets of it. The same rules hold when it is created and
// for every command.
type Env struct {
	Passed   map[string]string
	Blocked  []BlockedEnv
	Warnings []string
}

// BlockedEnv is a variable that did not enter.
type BlockedEnv struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// SanitizeEnv decides which variables enter a sandbox. Warnings and reasons
// never hold values.
func SanitizeEnv(r EnvRequest) Env {
	env := Env{Passed: map[string]string{}}
	inherited := maps.Clone(r.Inherited)
	delete(inherited, "PATH")
	merged := map[string]string{}
	for _, layer := range []map[string]string{inherited, r.Configured, r.Call} {
		maps.Copy(merged, layer)
	}
	for _, name := range slices.Sorted(maps.Keys(merged)) {
		env.admit(name, merged[name], r)
	}
	return env
}

func (e *Env) admit(name, value string, r EnvRequest) {
	if reason := blockReason(name, value, r); reason != "" {
		e.Blocked = append(e.Blocked, BlockedEnv{Name: name, Reason: reason})
		return
	}
	e.Passed[name] = value
	e.Warnings = append(e.Warnings, envWarnings(name, value)...)
}

// blockReason says why a variable may not enter, or "".
func blockReason(name, value string, r EnvRequest) string {
	switch reason := variable.Reason(name, value); {
	case reason != "":
		return reason
	case r.Strict && !isStrictName(name):
		return "strict mode lets in only a few names"
	case variable.IsSecret(name) && !slices.Contains(r.AllowSecret, name):
		return variable.SecretReason
	}
	return ""
}

func envWarnings(name, value string) []string {
	var warnings []string
	warn := func(text string) { warnings = append(warnings, name+": "+text) }
	if variable.IsSecret(name) {
		warn("A secret enters the sandbox (dangerouslyAllowSecretEnv)")
	}
	if len(value) > longValue {
		warn("Value exceeds maximum length")
	}
	if looksEncoded.MatchString(value) {
		warn("Value looks like base64-encoded credential data")
	}
	return warnings
}

func isStrictName(name string) bool {
	return slices.Contains(strictNames, name) || strings.HasPrefix(name, "LC_")
}
