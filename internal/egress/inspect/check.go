package inspect

import (
	"context"
	"net/url"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/egress/rule"
)

// MaxTarget is the most bytes of a request's path and query.
const MaxTarget = 8 << 10

// check refuses requests that are for another host, or that servers read differently.
func (s *session) check() *Refusal {
	switch method := string(s.q.Method); {
	case !s.isOurHost(string(s.q.Host)):
		return refuse(Protocol, 421, "the request is for another host than the connection")
	case len(s.q.Target) > MaxTarget:
		return refuse(Protocol, 414, "the address is longer than 8192 bytes")
	case method == "CONNECT" || method == "TRACE":
		return refuse(Protocol, 405, "method "+method+" is not passed on")
	}
	if r := checkPath(pathOf(s.q.Target)); r != nil {
		return r
	}
	for i := range s.q.Fields {
		if name := strings.ToLower(string(s.q.Fields[i].Name)); changesMeaning(name) {
			return refuse(Protocol, 400, "header "+name+" would change the request behind the rules")
		}
	}
	return nil
}

// isOurHost compares a Host with the name that was judged. The port may be left out
// where it is the scheme's own.
func (s *session) isOurHost(host string) bool {
	name := s.target.Name
	if strings.EqualFold(host, name) {
		return s.target.Port == 443 || s.target.Port == 80
	}
	return strings.EqualFold(host, name+":"+strconv.Itoa(s.target.Port))
}

// pathOf returns the path of a target, without the query.
func pathOf(target []byte) string {
	path, _, _ := strings.Cut(string(target), "?")
	return path
}

// printablePath is a path for records: bounded, and of plain characters as h1 has
// checked.
func printablePath(target []byte) string {
	path := pathOf(target)
	return path[:min(len(path), MaxTarget)]
}

// checkPath refuses paths that name another resource once a server has resolved them.
func checkPath(path string) *Refusal {
	decoded, err := url.PathUnescape(path)
	if err != nil || strings.HasPrefix(path, "//") || strings.ContainsAny(decoded, "\\\x00\r\n") {
		return refuse(Protocol, 400, "the path can be read in more than one way")
	}
	for segment := range strings.SplitSeq(decoded, "/") {
		if segment, _, _ = strings.Cut(segment, ";"); segment == "." || segment == ".." {
			return refuse(Protocol, 400, "the path has . or .. in it")
		}
	}
	return nil
}

// changesMeaning reports whether some servers take the method, the path or the length
// of a request from a header of this name, in lower case.
func changesMeaning(name string) bool {
	switch name {
	case "x-http-method-override", "x-http-method", "x-method-override", "x-original-url", "x-rewrite-url", "x-original-uri",
		"content_length", "transfer_encoding", "http2-settings":
		return true
	}
	return false
}

// judge asks the rules about the request.
func (s *session) judge(ctx context.Context) (rule.Decision, *Refusal) {
	d := s.target.Decide(ctx, string(s.q.Method), string(s.q.Target))
	if !d.Allow {
		return d, &Refusal{Kind: Denied, Reason: d.Reason, Hint: d.Hint, status: 403}
	}
	if s.q.Upgrade != nil && !d.WebSocket {
		return d, &Refusal{Kind: Denied, Reason: "no other protocol may be spoken with this host", Hint: "webSocket: true in the rule allows it", status: 403}
	}
	return d, nil
}
