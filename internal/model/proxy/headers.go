package proxy

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/audit/traceparent"
	"github.com/atoll-run/atoll/internal/h1"
	"github.com/atoll-run/atoll/internal/model/grant"
)

// headers are the fields about a caller, ready to be sent. The
// request's own id goes between the two parts of the metadata.
type headers struct {
	fields        http.Header // shared by all requests of the caller: never changed
	before, after string      // of the metadata
	endUser       string      // who pays; "": the agent, see EndUser
}

// maxIdentity bounds what can be put into a header.
const maxIdentity = 256

// newHeaders returns the fields of a subject, with those that its session adds. It
// returns an error for a name that does not fit into a header, since the call
// would be billed to another. The subject's account is the end user, if it has one.
func newHeaders(s *audit.Subject, added map[string]string) (headers, error) {
	for _, name := range []string{cmp.Or(s.Account, s.Agent), s.Run} {
		if !fitsHeader(name) {
			return headers{}, fmt.Errorf("the name %q cannot be sent in a header", name)
		}
	}
	added, err := grant.Headers(added)
	if err != nil {
		return headers{}, err
	}
	endUser := cmp.Or(s.Account, added[grant.EndUserHeader])
	delete(added, grant.EndUserHeader)
	own := map[string]string{grant.RunHeader: s.Run}
	if traceparent.IsID(s.Trace) {
		own[traceparent.Header] = traceparent.HeaderValue(s.Trace, s.Run)
	}
	if s.Run == "" || added[grant.RunHeader] != "" {
		delete(own, grant.RunHeader)
	}
	said, err := metadata(s, added[grant.MetadataHeader])
	if err != nil {
		return headers{}, err
	}
	delete(added, grant.MetadataHeader)
	maps.Copy(added, own)
	h := headers{fields: http.Header{}, before: "{" + said + `"` + requestMember + `":"`, after: `"}`, endUser: endUser}
	for name, value := range added {
		h.fields.Set(name, value)
	}
	return h, nil
}

// metadata returns the members for the spend log: ours, replaced and followed by
// those of the session. A session cannot set the request's id.
func metadata(s *audit.Subject, added string) (string, error) {
	theirs := map[string]jsontext.Value{}
	if added != "" {
		var err error
		if theirs, err = grant.Metadata(added); err != nil {
			return "", err
		}
	}
	var b strings.Builder
	write := func(name, value string) { b.WriteString(asciiJSON(name) + ":" + value + ",") }
	for _, own := range []struct{ name, value string }{
		{"run_id", asciiJSON(cmp.Or(s.KnownAs, s.Run))}, {"attempt", attempt(s.Attempt)}, {"graph_id", asciiJSON(s.Graph)},
		{"session_id", asciiJSON(s.Session)}, {"existing_trace_id", asciiJSON(s.Trace)},
	} {
		if _, replaced := theirs[own.name]; !replaced && own.value != `""` {
			write(own.name, own.value)
		}
	}
	delete(theirs, requestMember)
	for _, name := range slices.Sorted(maps.Keys(theirs)) {
		write(name, string(theirs[name]))
	}
	return b.String(), nil
}

// attempt returns the number of an attempt as JSON, from 0 on; other text becomes
// a string.
func attempt(said string) string {
	if said == "" {
		return "0"
	}
	if n, err := strconv.ParseUint(said, 10, 31); err == nil {
		return strconv.FormatUint(n, 10)
	}
	return asciiJSON(said)
}

// requestMember is the member of the metadata that holds our id of the request.
const requestMember = "req"

// fitsHeader reports whether all parsers read a header with this value the same.
func fitsHeader(value string) bool {
	return len(value) <= maxIdentity && !strings.ContainsFunc(value, func(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune(`"\,`, c) })
}

// asciiJSON returns a JSON string in ASCII, which can be a header's value.
func asciiJSON(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c >= ' ' && c <= '~':
			b.WriteRune(c)
		case c > 0xffff:
			c -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+c>>10, 0xdc00+c&0x3ff)
		default:
			fmt.Fprintf(&b, `\u%04x`, c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// add adds the fields to those of the request with this id.
func (h *headers) add(to http.Header, id string) {
	maps.Copy(to, h.fields)
	to[metadataField] = []string{h.before + id + h.after}
	to[callField] = []string{id}
}

// maxPassed bounds a caller's header that is passed on.
const maxPassed = 2 << 10

// passedUp are the fields of a caller that are passed to the upstream. Everything
// else is dropped: credentials, x-litellm-*, what Connection lists.
var passedUp = []struct{ theirs, ours string }{
	{"anthropic-version", "Anthropic-Version"}, {"anthropic-beta", "Anthropic-Beta"}, {"openai-beta", "Openai-Beta"},
}

// addPassed adds them, each once.
func addPassed(to http.Header, q *h1.Request) {
	for _, name := range passedUp {
		if value := q.Get(name.theirs); len(value) > 0 && len(value) <= maxPassed && isPlain(string(value)) {
			to[name.ours] = []string{string(value)}
		}
	}
}

// addBeta adds what a provider's key needs to the features that the caller asks for.
func addBeta(to http.Header, beta string) {
	const name = "Anthropic-Beta"
	if beta == "" {
		return
	}
	asked := to.Get(name)
	if asked == "" {
		to[name] = []string{beta}
	} else if !slices.Contains(strings.Split(strings.ReplaceAll(asked, " ", ""), ","), beta) {
		to[name] = []string{asked + "," + beta}
	}
}

func isPlain(value string) bool {
	for _, c := range []byte(value) {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

// passedDown reports whether a field of an answer is passed to the caller. Fields
// with costs, keys, versions or addresses are not.
func passedDown(name string) bool {
	switch name {
	case "Retry-After", "Retry-After-Ms", "X-Should-Retry", "Request-Id", "X-Request-Id":
		return true
	}
	return strings.HasPrefix(name, "X-Ratelimit-") || strings.HasPrefix(name, "Anthropic-Ratelimit-")
}

// contentType returns the type that the caller gets for the upstream's type.
func contentType(value string) string {
	media, _, _ := strings.Cut(value, ";")
	switch strings.ToLower(strings.TrimSpace(media)) {
	case "text/event-stream":
		return eventStream
	case "text/plain":
		return "text/plain; charset=utf-8"
	case "text/html":
		return "text/plain; charset=utf-8" // never rendered as a page
	}
	return "application/json"
}

const eventStream = "text/event-stream"
