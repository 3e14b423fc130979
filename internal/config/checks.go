package config

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

// valueCheck looks at one value, or one key of a record, and returns what is
// wrong with it and what to do, or two empty strings. Its messages never repeat
// a value that may be a secret.
type valueCheck func(n *node) (message, hint string)

// valueChecks are the checks that tags name.
var valueChecks = map[string]valueCheck{
	"address":        checkAddress,
	"agentID":        checkAgentID,
	"backend":        checkBackend,
	"bind":           checkBind,
	"branchName":     checkBranchName,
	"browserNetwork": checkNetworkMode,
	"envName":        checkEnvName,
	"envValue":       checkEnvValue,
	"extraHost":      checkExtraHost,
	"hostPath":       checkHostPath,
	"agentURL":       checkAgentURL,
	"gatewayURL":     checkGatewayURL,
	"hostName":       checkHostName,
	"image":          checkWord,
	"ipAddress":      checkIPAddress,
	"line":           checkLine,
	"listedID":       checkListedID,
	"network":        checkNetwork,
	"origin":         checkOrigin,
	"pathPattern":    checkPathPattern,
	"prefix":         checkPrefix,
	"profile":        checkProfile,
	"range":          checkRange,
	"repository":     checkRepository,
	"script":         checkScript,
	"size":           checkSize,
	"amount":         checkAmount,
	"swap":           checkSwap,
	"tmpfs":          checkTmpfs,
	"trustedNetwork": checkTrustedNetwork,
	"ulimit":         checkUlimit,
	"ulimitName":     checkUlimitName,
	"treeTarget":     checkTreeTarget,
	"storageName":    optionNames("size", "inodes"),
	"roomName":       optionNames("size", "files"),
	"model":          checkModel,
	"bodyMember":     checkBodyMember,
	"providerName":   checkProviderName,
	"upstreamURL":    checkUpstreamURL,
	"user":           checkWord,
	"variantID":      checkVariantID,
	"word":           checkWord,
	"workdir":        checkWorkdir,
}

// checkLine wants text on one line, not blank, without control characters.
func checkLine(n *node) (message, hint string) {
	switch {
	case strings.TrimSpace(n.text) == "":
		return "must not be empty", ""
	case strings.ContainsFunc(n.text, unicode.IsControl):
		return "must not have control characters", ""
	}
	return "", ""
}

// checkWord wants text without white space.
func checkWord(n *node) (message, hint string) {
	if message, hint = checkLine(n); message != "" {
		return message, hint
	}
	if strings.ContainsFunc(n.text, unicode.IsSpace) {
		return "must not have white space", ""
	}
	return "", ""
}

func checkScript(n *node) (message, hint string) {
	if strings.ContainsRune(n.text, 0) {
		return "must not have NUL characters", ""
	}
	return "", ""
}

var prefixForm = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)

func checkPrefix(n *node) (message, hint string) {
	if !prefixForm.MatchString(n.text) {
		return "must be a letter or digit, then letters, digits, '_', '.' or '-'", ""
	}
	return "", ""
}

func checkHostPath(n *node) (message, hint string) {
	if message, hint = checkLine(n); message != "" {
		return message, hint
	}
	if strings.HasPrefix(n.text, "~") && n.text != "~" && !strings.HasPrefix(n.text, "~/") {
		return "the home directory of another user cannot be used", "write the path in full"
	}
	return "", ""
}

func checkWorkdir(n *node) (message, hint string) {
	if message, hint = checkLine(n); message != "" {
		return message, hint
	}
	if !strings.HasPrefix(n.text, "/") || filepath.Clean(n.text) == "/" {
		return "must be an absolute path below /", ""
	}
	return "", ""
}

func checkTmpfs(n *node) (message, hint string) {
	dir, _, _ := strings.Cut(n.text, ":")
	return checkWorkdir(&node{kind: '"', text: dir})
}

func checkAddress(n *node) (message, hint string) {
	if _, err := netip.ParseAddr(n.text); err != nil {
		return "expected an IP address, found " + wording.Quote(n.text), ""
	}
	return "", ""
}

func checkRange(n *node) (message, hint string) {
	if _, err := netip.ParsePrefix(n.text); err != nil {
		return "expected a network such as 172.21.0.0/16, found " + wording.Quote(n.text), ""
	}
	return "", ""
}

// hostGateway is docker's word for the host's address.
const hostGateway = "host-gateway"

func checkExtraHost(n *node) (message, hint string) {
	name, address, ok := strings.Cut(n.text, ":")
	if !ok {
		name, address, ok = strings.Cut(n.text, "=")
	}
	_, err := netip.ParseAddr(strings.Trim(address, "[]"))
	if !ok || name == "" || strings.ContainsFunc(name, unicode.IsSpace) || err != nil && address != hostGateway {
		return "expected NAME:ADDRESS, found " + wording.Quote(n.text), ""
	}
	return "", ""
}

var envNameForm = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

func checkEnvName(n *node) (message, hint string) {
	if !envNameForm.MatchString(n.text) {
		return "the name of an environment variable must be letters, digits and '_', not starting with a digit", ""
	}
	return "", ""
}

func checkEnvValue(n *node) (message, hint string) {
	if strings.ContainsAny(n.text, "\x00\n\r") {
		return "the value of an environment variable must be one line without NUL", ""
	}
	return "", ""
}

// backends are the values of sandbox.backend.
var backends = []string{"auto", "docker", "podman", "linux", "kubernetes"}

func checkBackend(n *node) (message, hint string) {
	name := strings.ToLower(strings.TrimSpace(n.text))
	hint = "write " + wording.OneOf(backends)
	switch {
	case slices.Contains(backends, name):
		return "", ""
	case slices.Contains(openclawkeys.Backends, name):
		return "Atoll has no sandbox backend " + wording.Quote(name), hint
	default:
		return "unknown sandbox backend " + wording.Quote(n.text), hint
	}
}

func checkAgentID(n *node) (message, hint string) {
	if !agentIDForm.MatchString(n.text) {
		return "an agent id must be 1 to 64 letters, digits, '_' and '-', not starting with '-'", ""
	}
	return "", ""
}

func checkListedID(n *node) (message, hint string) {
	if strings.TrimSpace(n.text) == "" {
		return "must not be empty", ""
	}
	if id := NormalizeAgentID(n.text); len(n.text) > MaxAgentID {
		return "an agent id has at most 64 characters", "this one would be cut to " + wording.Quote(id)
	}
	return "", ""
}
