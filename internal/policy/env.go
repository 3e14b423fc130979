package policy

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

const (
	// longValue is the length from which a variable is suspicious.
	longValue = 32768
	// maxVariable is the most that the kernel passes for one "NAME=value".
	maxVariable = 131071
)

// secretNames are variables that hold secrets although their names end like no
// other secret's.
var secretNames = []string{"AWS_SECRET_ACCESS_KEY", "AWS_SECRET_KEY"}

// secretEndings end the names of variables that hold secrets.
var secretEndings = []string{
	"API_KEY", "TOKEN", "PASSWORD", "PRIVATE_KEY", "SECRET", "_ADMIN_KEY", "_MASTER_KEY",
}

// strictNames are all that strict mode lets in, besides LC_*.
var strictNames = []string{"LANG", "PATH", "HOME", "USER", "SHELL", "TERM", "TZ", "NODE_ENV"}

var (
	portableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	looksEncoded = regexp.MustCompile(`^[A-Za-z0-9+/=]{80,}$`)
)

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
	switch {
	case !portableName.MatchString(name):
		return "the name is not made of letters, digits and _"
	case strings.ContainsRune(value, 0):
		return "the value contains a NUL byte"
	case len(name)+len("=")+len(value) > maxVariable:
		return fmt.Sprintf("the value is longer than the %d bytes that a process can be given", maxVariable)
	case r.Strict && !isStrictName(name):
		return "strict mode lets in only a few names"
	case isSecretName(name) && !slices.Contains(r.AllowSecret, name):
		return "the name is that of a secret; dangerouslyAllowSecretEnv would pass it"
	}
	return ""
}

func envWarnings(name, value string) []string {
	var warnings []string
	warn := func(text string) { warnings = append(warnings, name+": "+text) }
	if isSecretName(name) {
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

func isSecretName(name string) bool {
	name = strings.ToUpper(name)
	return slices.Contains(secretNames, name) ||
		slices.ContainsFunc(secretEndings, func(end string) bool { return strings.HasSuffix(name, end) })
}

func isStrictName(name string) bool {
	return slices.Contains(strictNames, name) || strings.HasPrefix(name, "LC_")
}
