package proxy

import (
	"bytes"
	"strings"

	"github.com/atoll-run/atoll/internal/model/proxy/ask"
	"github.com/atoll-run/atoll/internal/model/proxy/dialect"
)

const (
	googlePath = "/v1beta/models/" // what the paths of Google's API begin with
	// googleOpenAI is where Google's server has OpenAI's dialect.
	googleOpenAI = "/v1beta/openai/"
	// googleKeyField is the header of Google's keys.
	googleKeyField = "x-goog-api-key"
	// eventsQuery asks Google's API for a stream of events; without it a stream is one
	// JSON array, which cannot be counted as it comes.
	eventsQuery = "alt=sse"
	// maxGoogleModel bounds the name of a model in a path.
	maxGoogleModel = 128
)

// googleRoute returns the route of MODEL:METHOD, the rest of a path of Google's API; nil
// if it is not served. There is one model in it and nothing else: no further segment, no
// tuned model, no escape.
func googleRoute(method, rest []byte) *route {
	model, call, _ := bytes.Cut(rest, []byte{':'})
	if string(method) != "POST" || !isGoogleModel(model) {
		return nil
	}
	path := googlePath + string(rest)
	r := &route{method: "POST", path: path, kind: routeAsk, shape: ask.Generate, upstream: path, model: string(model)}
	switch string(call) {
	case "generateContent":
	case "streamGenerateContent":
		r.stream = true
	case "countTokens":
		r.shape = ask.GenerateCount
	default:
		return nil
	}
	return r
}

// isGoogleModel reports whether a segment of a path is the name of one model, which means
// the same to every server.
func isGoogleModel(name []byte) bool {
	for _, c := range name {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		digit := '0' <= c && c <= '9'
		if !letter && !digit && c != '.' && c != '-' && c != '_' {
			return false
		}
	}
	return len(name) > 0 && len(name) <= maxGoogleModel && len(bytes.Trim(name, ".")) > 0
}

// asksForEvents reports whether a query asks for events, in the one spelling that is
// known.
func asksForEvents(query []byte) bool {
	for part := range bytes.SplitSeq(query, []byte{'&'}) {
		if string(part) == eventsQuery {
			return true
		}
	}
	return false
}

// checkGoogle refuses a stream that would not be one of events.
func (x *exchange) checkGoogle() *dialect.Problem {
	if x.route.stream && x.route.query(x.c.q.Target) == "" {
		return &dialect.Problem{Status: 400, Code: "stream_format", Message: "a stream is served as events only: ask with ?" + eventsQuery}
	}
	return nil
}

// speaks reports whether the provider knows a dialect. Google's server knows its own and
// OpenAI's Chat Completions; what others know they say themselves.
func (u *upstream) speaks(d dialect.Dialect) bool {
	return u.Header != googleKeyField || d == dialect.Google || d == dialect.OpenAI
}

// pathOf returns the path of a route at the upstream.
func (u *upstream) pathOf(r *route) string {
	if rest, ok := strings.CutPrefix(r.upstream, "/v1/"); ok && u.Header == googleKeyField {
		return googleOpenAI + rest
	}
	return r.upstream
}

// googleIDs returns the ids of models without the word that Google's list puts before
// them.
func (u *upstream) googleIDs(ids []string) []string {
	for i := range ids {
		if u.Header == googleKeyField {
			ids[i] = strings.TrimPrefix(ids[i], "models/")
		}
	}
	return ids
}

// sendBareError sends an error as Google's server does in the middle of a stream: as a
// chunk of its own that is no event. Google's SDK for JavaScript looks for it there, and
// takes an event with an error for an empty answer, which its callers ask for again.
func (x *exchange) sendBareError(p *dialect.Problem) {
	if x.flush(false) != nil {
		return // the flush that follows fails too
	}
	x.w.text = append(x.dialect.AppendError(x.w.text[:0], p), "\n\n"...)
	x.w.out.Append(x.w.text)
	_ = x.flush(false)
}
