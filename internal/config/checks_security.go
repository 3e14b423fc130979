package config

import (
	"strings"

	"github.com/atoll-run/atoll/internal/config/wording"
	"github.com/atoll-run/atoll/internal/lazyregexp"
)

// The checks of this file refuse what would open a sandbox. They look at text
// only; what needs the disk is decided later, by policy.

const securityPrefix = "Sandbox security: "

const networkHint = `use "none", "bridge" or the name of a network`

// normalNetwork is how a network name is compared.
func normalNetwork(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

func checkNetwork(n *node) (message, hint string) {
	if strings.TrimSpace(n.text) == "" {
		return "must not be empty", networkHint
	}
	return checkNetworkMode(n)
}

// checkNetworkMode lets a blank name through: for a browser it is the default.
func checkNetworkMode(n *node) (message, hint string) {
	switch name := strings.TrimSpace(n.text); {
	case name == "":
		return "", ""
	case normalNetwork(name) == "host":
		return securityPrefix + "the host's own network is never given to a sandbox", networkHint
	default:
		return checkWord(&node{kind: '"', text: name})
	}
}

// joinsContainer reports whether a network is that of another container.
func joinsContainer(network string) bool {
	return strings.HasPrefix(normalNetwork(network), "container:")
}

const joinMessage = securityPrefix + "joining the network of another container is blocked"

const joinHint = "set docker.dangerouslyAllowContainerNamespaceJoin: true beside it, or " + networkHint

func checkProfile(n *node) (message, hint string) {
	if strings.EqualFold(strings.TrimSpace(n.text), "unconfined") {
		return securityPrefix + "the profile unconfined would switch the protection off",
			"remove the key to use Atoll's own profile, or name another one"
	}
	return checkLine(n)
}

var windowsDrive = lazyregexp.New(`^[A-Za-z]:[\\/]`)

func checkBind(n *node) (message, hint string) {
	const form = "write SOURCE:TARGET or SOURCE:TARGET:ro with an absolute SOURCE"
	if strings.TrimSpace(n.text) == "" {
		return securityPrefix + "a bind must not be empty", form
	}
	if message, _ = checkLine(n); message != "" {
		return securityPrefix + "a bind " + message, form
	}
	source, target, ok := splitBind(n.text)
	switch {
	case !strings.HasPrefix(source, "/") && !windowsDrive.MatchString(source):
		return securityPrefix + "the source of the bind " + wording.Quote(n.text) + " is not an absolute path", form
	case !ok || !strings.HasPrefix(target, "/"):
		return "the bind " + wording.Quote(n.text) + " has no absolute target", form
	}
	return "", ""
}

// splitBind cuts a bind at the colon after its source and the one after its
// target. A Windows drive's colon belongs to the source.
func splitBind(bind string) (source, target string, ok bool) {
	drive := ""
	if windowsDrive.MatchString(bind) {
		drive, bind = bind[:2], bind[2:]
	}
	source, rest, ok := strings.Cut(bind, ":")
	target, _, _ = strings.Cut(rest, ":")
	return drive + source, target, ok
}
