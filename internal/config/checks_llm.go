package config

import (
	"net/url"
	"path/filepath"
	"strings"

	"github.com/atoll-run/atoll/internal/lazyregexp"
)

var (
	providerNameForm = lazyregexp.New(`^[a-z0-9][a-z0-9_-]{0,63}$`)
	modelForm        = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,199}\*?$|^\*$`)
)

var bodyMemberForm = lazyregexp.New(`^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,127}$`)

func checkBodyMember(n *node) (message, hint string) {
	if !bodyMemberForm.MatchString(n.text) {
		return "a name in a request must be 1 to 128 letters, digits and _-.", ""
	}
	return "", ""
}

func checkProviderName(n *node) (message, hint string) {
	if !providerNameForm.MatchString(n.text) {
		return "a provider's name must be 1 to 64 lower-case letters, digits, '_' and '-', not starting with '_' or '-'", ""
	}
	return "", ""
}

func checkModel(n *node) (message, hint string) {
	if !modelForm.MatchString(n.text) {
		return "a model's name must be letters, digits and ._:/@+-, with a * only at its end", ""
	}
	return "", ""
}

// checkUpstreamURL wants an address that nothing can be smuggled in: who is
// asked, and with which key, must be plain to see.
func checkUpstreamURL(n *node) (message, hint string) {
	if socket, ok := strings.CutPrefix(n.text, "unix:"); ok {
		if !filepath.IsAbs(socket) || filepath.Clean(socket) != socket {
			return "expected unix: and the plain absolute path of a socket", ""
		}
		return "", ""
	}
	u, err := url.Parse(n.text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return "expected an address such as https://api.example.org", ""
	case u.User != nil:
		return "the address must not hold a name or a password", "put the key into keys"
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return "the address must not have a query or a fragment", ""
	case strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/v1"):
		return "the address must not end in /v1: it is added to every request", "remove /v1"
	case strings.Contains(u.EscapedPath(), "%") || strings.Contains(u.Path, "//") || strings.Contains(u.Path, "/."):
		return "the address has a path that can be read in two ways", "write a plain path, or none"
	}
	return "", ""
}

// checkOneKeySource wants exactly one way to a key.
func checkOneKeySource(c *checker, at *path, n *node) {
	var ways []string
	for _, way := range []string{"env", "file", "command", "age"} {
		if n.get(way) != nil {
			ways = append(ways, way)
		}
	}
	const hint = `write one of {env: "NAME"}, {file: "PATH"}, {command: ["PROGRAM"]}, {age: "PATH", identity: "PATH"}`
	if len(ways) != 1 {
		c.error(finding{at, n.offset, "a key comes from exactly one of env, file, command and age", hint})
		return
	}
	if (ways[0] == "age") != (n.get("identity") != nil) {
		c.error(finding{at, n.offset, "age and identity belong together", hint})
	}
	if command := n.get("command"); command != nil && len(command.items) == 0 {
		c.error(finding{at.child("command"), command.offset, "the program is missing", hint})
	}
}

// checkProvider wants keys, and LiteLLM for what only LiteLLM can do.
func checkProvider(c *checker, at *path, n *node) {
	if keys := n.get("keys"); keys != nil && keys.kind == '[' && len(keys.items) == 0 {
		c.error(finding{at.child("keys"), keys.offset, "at least one key is needed", ""})
	}
	if kind := n.get("kind"); kind == nil || kind.text == DefaultLLMProvider {
		return
	}
	for _, key := range []string{"adminKey", "keyPerRun"} {
		if value := n.get(key); value != nil {
			c.error(finding{at.child(key), value.offset, "only a provider of kind litellm has it", ""})
		}
	}
}
