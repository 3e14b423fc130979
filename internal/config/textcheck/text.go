package textcheck

import (
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/atoll-run/atoll/internal/config/openclawkeys"
	"github.com/atoll-run/atoll/internal/config/wording"
	"github.com/atoll-run/atoll/internal/lazyregexp"
)

// checkLine wants text on one line, not blank, without control characters.
func checkLine(text string) (message, hint string) {
	switch {
	case strings.TrimSpace(text) == "":
		return "must not be empty", ""
	case strings.ContainsFunc(text, unicode.IsControl):
		return "must not have control characters", ""
	}
	return "", ""
}

// checkWord wants text without white space.
func checkWord(text string) (message, hint string) {
	if message, hint = checkLine(text); message != "" {
		return message, hint
	}
	if strings.ContainsFunc(text, unicode.IsSpace) {
		return "must not have white space", ""
	}
	return "", ""
}

func checkScript(text string) (message, hint string) {
	if strings.ContainsRune(text, 0) {
		return "must not have NUL characters", ""
	}
	return "", ""
}

// PrefixForm is the form of what container names begin with.
var PrefixForm = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)

func checkPrefix(text string) (message, hint string) {
	if !PrefixForm.MatchString(text) {
		return "must be a letter or digit, then letters, digits, '_', '.' or '-'", ""
	}
	return "", ""
}

func checkHostPath(text string) (message, hint string) {
	if message, hint = checkLine(text); message != "" {
		return message, hint
	}
	if strings.HasPrefix(text, "~") && text != "~" && !strings.HasPrefix(text, "~/") {
		return "the home directory of another user cannot be used", "write the path in full"
	}
	return "", ""
}

func checkWorkdir(text string) (message, hint string) {
	if message, hint = checkLine(text); message != "" {
		return message, hint
	}
	if !strings.HasPrefix(text, "/") || filepath.Clean(text) == "/" {
		return "must be an absolute path below /", ""
	}
	return "", ""
}

func checkTmpfs(text string) (message, hint string) {
	dir, _, _ := strings.Cut(text, ":")
	return checkWorkdir(dir)
}

func checkAddress(text string) (message, hint string) {
	if _, err := netip.ParseAddr(text); err != nil {
		return "expected an IP address, found " + wording.Quote(text), ""
	}
	return "", ""
}

func checkRange(text string) (message, hint string) {
	if _, err := netip.ParsePrefix(text); err != nil {
		return "expected a network such as 172.21.0.0/16, found " + wording.Quote(text), ""
	}
	return "", ""
}

// hostGateway is docker's word for the host's address.
const hostGateway = "host-gateway"

func checkExtraHost(text string) (message, hint string) {
	name, address, ok := strings.Cut(text, ":")
	if !ok {
		name, address, ok = strings.Cut(text, "=")
	}
	_, err := netip.ParseAddr(strings.Trim(address, "[]"))
	if !ok || name == "" || strings.ContainsFunc(name, unicode.IsSpace) || err != nil && address != hostGateway {
		return "expected NAME:ADDRESS, found " + wording.Quote(text), ""
	}
	return "", ""
}

// EnvNameForm is the form of the name of an environment variable.
var EnvNameForm = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

func checkEnvName(text string) (message, hint string) {
	if !EnvNameForm.MatchString(text) {
		return "the name of an environment variable must be letters, digits and '_', not starting with a digit", ""
	}
	return "", ""
}

func checkEnvValue(text string) (message, hint string) {
	if strings.ContainsAny(text, "\x00\n\r") {
		return "the value of an environment variable must be one line without NUL", ""
	}
	return "", ""
}

// backends are the values of sandbox.backend.
var backends = []string{"auto", "docker", "podman", "linux", "kubernetes"}

func checkBackend(text string) (message, hint string) {
	name := strings.ToLower(strings.TrimSpace(text))
	hint = "write " + wording.OneOf(backends)
	switch {
	case slices.Contains(backends, name):
		return "", ""
	case slices.Contains(openclawkeys.Backends, name):
		return "Atoll has no sandbox backend " + wording.Quote(name), hint
	default:
		return "unknown sandbox backend " + wording.Quote(text), hint
	}
}
