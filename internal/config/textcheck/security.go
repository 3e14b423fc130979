package textcheck

import (
	"strings"

	"github.com/atoll-run/atoll/internal/config/wording"
	"github.com/atoll-run/atoll/internal/lazyregexp"
)

// The checks of this file refuse what would open a sandbox. They look at text
// only; what needs the disk is decided later, by policy.

// SecurityPrefix begins the messages of what would open a sandbox.
const SecurityPrefix = "Sandbox security: "

const networkHint = `use "none", "bridge" or the name of a network`

// normalNetwork is how a network name is compared.
func normalNetwork(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

func checkNetwork(text string) (message, hint string) {
	if strings.TrimSpace(text) == "" {
		return "must not be empty", networkHint
	}
	return checkNetworkMode(text)
}

// checkNetworkMode lets a blank name through: for a browser it is the default.
func checkNetworkMode(text string) (message, hint string) {
	switch name := strings.TrimSpace(text); {
	case name == "":
		return "", ""
	case normalNetwork(name) == "host":
		return SecurityPrefix + "the host's own network is never given to a sandbox", networkHint
	default:
		return checkWord(name)
	}
}

// JoinsContainer reports whether a network is that of another container.
func JoinsContainer(network string) bool {
	return strings.HasPrefix(normalNetwork(network), "container:")
}

// JoinMessage refuses the network of another container, of a sandbox or a browser.
const JoinMessage = SecurityPrefix + "joining the network of another container is blocked"

// JoinHint is the hint of JoinMessage.
const JoinHint = "set docker.dangerouslyAllowContainerNamespaceJoin: true beside it, or " + networkHint

func checkProfile(text string) (message, hint string) {
	if strings.EqualFold(strings.TrimSpace(text), "unconfined") {
		return SecurityPrefix + "the profile unconfined would switch the protection off",
			"remove the key to use Atoll's own profile, or name another one"
	}
	return checkLine(text)
}

var windowsDrive = lazyregexp.New(`^[A-Za-z]:[\\/]`)

func checkBind(text string) (message, hint string) {
	const form = "write SOURCE:TARGET or SOURCE:TARGET:ro with an absolute SOURCE"
	if strings.TrimSpace(text) == "" {
		return SecurityPrefix + "a bind must not be empty", form
	}
	if message, _ = checkLine(text); message != "" {
		return SecurityPrefix + "a bind " + message, form
	}
	source, target, ok := splitBind(text)
	switch {
	case !strings.HasPrefix(source, "/") && !windowsDrive.MatchString(source):
		return SecurityPrefix + "the source of the bind " + wording.Quote(text) + " is not an absolute path", form
	case !ok || !strings.HasPrefix(target, "/"):
		return "the bind " + wording.Quote(text) + " has no absolute target", form
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
