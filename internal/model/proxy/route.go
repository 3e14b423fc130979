package proxy

import (
	"bytes"

	"github.com/atoll-run/atoll/internal/model/proxy/ask"
	"github.com/atoll-run/atoll/internal/model/proxy/dialect"
)

// kind is the kind of a route.
type kind int

const (
	routeAsk    kind = iota // a request to a model
	routeList               // the list of models
	routeHealth             // health check; the upstream is not asked
)

// route is a method and a path that are served. There is no other.
type route struct {
	method, path string
	kind         kind
	shape        ask.Shape
	upstream     string // path there

	model  string // that the path names; "": the body does
	stream bool   // the path asks for a stream
}

func (r *route) dialect() dialect.Dialect { return dialect.Of(r.shape) }

// fixed returns a route whose path is always the same.
func fixed(method, path string, k kind, shape ask.Shape, upstream string) route {
	return route{method: method, path: path, kind: k, shape: shape, upstream: upstream}
}

// routes is everything that is served, but for what googleRoute finds. Paths are compared
// byte for byte: nothing is decoded, cleaned or matched by prefix.
var routes = [...]route{
	fixed("POST", "/v1/chat/completions", routeAsk, ask.Chat, "/v1/chat/completions"),
	fixed("POST", "/v1/messages", routeAsk, ask.Messages, "/v1/messages"),
	fixed("POST", "/v1/responses", routeAsk, ask.Responses, "/v1/responses"),
	fixed("POST", "/v1/messages/count_tokens", routeAsk, ask.Count, "/v1/messages/count_tokens"),
	fixed("POST", "/v1/responses/compact", routeAsk, ask.Compact, "/v1/responses/compact"),
	fixed("POST", "/v1/embeddings", routeAsk, ask.Embeddings, "/v1/embeddings"),
	fixed("GET", "/v1/models", routeList, ask.Chat, "/v1/models"),
	fixed("GET", "/health", routeHealth, ask.Chat, ""),
	fixed("HEAD", "/health", routeHealth, ask.Chat, ""),
	fixed("HEAD", "/", routeHealth, ask.Messages, ""),
	// OpenClaw and others use base addresses without /v1.
	fixed("POST", "/chat/completions", routeAsk, ask.Chat, "/v1/chat/completions"),
	fixed("POST", "/messages", routeAsk, ask.Messages, "/v1/messages"),
	fixed("POST", "/responses", routeAsk, ask.Responses, "/v1/responses"),
	fixed("POST", "/messages/count_tokens", routeAsk, ask.Count, "/v1/messages/count_tokens"),
	fixed("POST", "/responses/compact", routeAsk, ask.Compact, "/v1/responses/compact"),
	fixed("POST", "/embeddings", routeAsk, ask.Embeddings, "/v1/embeddings"),
	fixed("GET", "/models", routeList, ask.Chat, "/v1/models"),
}

// findRoute returns the route of a request. If there is none, near is the dialect
// for the error.
func findRoute(method, target []byte) (found *route, near dialect.Dialect) {
	path, _, _ := bytes.Cut(target, []byte{'?'})
	for i := range routes {
		if r := &routes[i]; string(path) == r.path {
			if string(method) == r.method {
				return r, r.dialect()
			}
			near = r.dialect()
		}
	}
	if name, ok := bytes.CutPrefix(path, []byte(googlePath)); ok {
		return googleRoute(method, name), dialect.Google
	}
	return nil, near
}

// query returns the part of a query that is passed on: beta=true, which Claude Code
// sends, and what has Google's API send events. Keys, and what would leave the count out
// of an answer, are not.
func (r *route) query(target []byte) string {
	_, q, _ := bytes.Cut(target, []byte{'?'})
	switch {
	case r.stream && asksForEvents(q):
		return eventsQuery
	case !r.stream && string(q) == "beta=true":
		return "beta=true"
	}
	return ""
}
