package rule

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/config"
)

// maxTarget bounds what one request can carry out in its path and query.
const maxTarget = 8 << 10

// Request decides about one request on a connection whose requests are read.
// The target is a path, with its query if it has one.
func (p *Policy) Request(name string, port int, method, target string) Decision {
	d, rules := p.connect(name, port)
	if !d.Allow || !d.judgesRequests() {
		return d
	}
	if reason := badRequest(method, target); reason != "" {
		return Decision{Action: d.Action, Rule: d.Rule, Reason: reason}
	}
	if len(rules) == 0 {
		return d
	}
	r := readRequest(method, target)
	return d.judge(rules, port, name, r)
}

// badRequest returns why no rule allows a request.
func badRequest(method, target string) string {
	switch {
	case method == "CONNECT" || method == "TRACE":
		return "the method " + method + " is never allowed"
	case method == "" || strings.ContainsFunc(method, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return "the method is not valid"
	case !strings.HasPrefix(target, "/"):
		return "the target of the request is not a path"
	case len(target) > maxTarget:
		return fmt.Sprintf("the path and query have %d bytes, %d are the most", len(target), maxTarget)
	case strings.ContainsFunc(target, func(r rune) bool { return r <= ' ' || r >= 0x7f }) || strings.Contains(target, "#"):
		return "the path has characters that must be encoded"
	}
	return ""
}

// judge returns the decision of the first rule that allows the request, with
// the secrets of all that do, else why the last one does not.
func (d Decision) judge(rules []*compiled, port int, name string, r request) Decision {
	allowed := Decision{Action: d.Action, Upgrade: d.Upgrade, Unbilled: d.Unbilled, Private: d.Private}
	refused := Decision{Action: d.Action}
	for _, c := range rules {
		reason := c.refuses(r)
		if reason != "" {
			refused.Rule, refused.Reason = c.text, reason
			continue
		}
		if !allowed.Allow {
			allowed.Allow, allowed.Rule = true, c.text
		}
		allowed.WebSocket = allowed.WebSocket || c.webSocket
		allowed.addSecret(c.secret)
	}
	if allowed.Allow {
		return allowed
	}
	refused.Hint = fmt.Sprintf("add { host: %q, methods: [%q], paths: [%q]%s }", name, r.method, r.path, portsText(port))
	return refused
}

func portsText(port int) string {
	if port == portHTTPS {
		return ""
	}
	return fmt.Sprintf(", ports: [%d]", port)
}

// request is what rules look at.
type request struct {
	method, path string
	git          string // what git does with it: config.GitRead, config.GitWrite or ""
}

// readRequest splits a target and recognises git's requests. The advertisement
// before a push is judged as the push.
func readRequest(method, target string) request {
	path, query, _ := strings.Cut(target, "?")
	r := request{method: method, path: path}
	service := path[strings.LastIndexByte(path, '/')+1:]
	if strings.HasSuffix(path, "/info/refs") {
		service = serviceOf(query)
	} else if method != "POST" {
		return r
	}
	switch service {
	case "git-upload-pack":
		r.git = config.GitRead
	case "git-receive-pack":
		r.git = config.GitWrite
	}
	return r
}

// serviceOf returns the service that a query names. Of several, one that writes
// counts.
func serviceOf(query string) string {
	values, err := url.ParseQuery(query)
	if err != nil || slices.Contains(values["service"], "git-receive-pack") {
		return "git-receive-pack"
	}
	return values.Get("service")
}

// refuses returns why the rule does not allow a request, or "".
func (c *compiled) refuses(r request) string {
	if reason := c.refusesMethod(r); reason != "" {
		return reason
	}
	if c.paths == nil || slices.ContainsFunc(c.paths, pathPattern.everything) {
		return ""
	}
	if isAmbiguous(r.path) {
		return "the path can be read in several ways, and the rule is for some paths only"
	}
	if !slices.ContainsFunc(c.paths, func(p pathPattern) bool { return p.match(r.path) }) {
		return fmt.Sprintf("the path is not in the rule (%s)", strings.Join(texts(c.paths), ", "))
	}
	return ""
}

// refusesMethod looks at the method, and at what git does: a rule that does not
// allow every method allows a push only if it says so.
func (c *compiled) refusesMethod(r request) string {
	if c.methods == nil && c.git == "" {
		return ""
	}
	if r.git == config.GitWrite && c.git != config.GitWrite && !slices.Contains(c.methods, "POST") {
		return "git push is not in the rule"
	}
	if r.git != "" && (c.git == config.GitWrite || c.git == r.git) {
		return ""
	}
	if c.methods == nil {
		return "only requests of git are in the rule"
	}
	if !slices.Contains(c.methods, r.method) {
		return fmt.Sprintf("method %s is not in the rule (%s)", r.method, strings.Join(c.methods, ", "))
	}
	return ""
}

func texts(patterns []pathPattern) []string {
	out := make([]string, len(patterns))
	for i, p := range patterns {
		out[i] = p.text
	}
	return out
}
