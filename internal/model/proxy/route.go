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
}

func (r *route) dialect() dialect.Dialect { return dialect.Of(r.shape) }

// routes is everything that is served. Paths are compared byte for byte: nothing
// is decoded, cleaned or matched by prefix.
var routes = [...]route{
	{"POST", "/v1/chat/completions", routeAsk, ask.Chat, "/v1/chat/completions"},
	{"POST", "/v1/messages", routeAsk, ask.Messages, "/v1/messages"},
	{"POST", "/v1/responses", routeAsk, ask.Responses, "/v1/responses"},
	{"POST", "/v1/messages/count_tokens", routeAsk, ask.Count, "/v1/messages/count_tokens"},
	{"POST", "/v1/responses/compact", routeAsk, ask.Compact, "/v1/responses/compact"},
	{"POST", "/v1/embeddings", routeAsk, ask.Embeddings, "/v1/embeddings"},
	{"GET", "/v1/models", routeList, ask.Chat, "/v1/models"},
	{"GET", "/health", routeHealth, ask.Chat, ""},
	{"HEAD", "/health", routeHealth, ask.Chat, ""},
	{"HEAD", "/", routeHealth, ask.Messages, ""},
	// OpenClaw and others use base addresses without /v1.
	{"POST", "/chat/completions", routeAsk, ask.Chat, "/v1/chat/completions"},
	{"POST", "/messages", routeAsk, ask.Messages, "/v1/messages"},
	{"POST", "/responses", routeAsk, ask.Responses, "/v1/responses"},
	{"POST", "/messages/count_tokens", routeAsk, ask.Count, "/v1/messages/count_tokens"},
	{"POST", "/responses/compact", routeAsk, ask.Compact, "/v1/responses/compact"},
	{"POST", "/embeddings", routeAsk, ask.Embeddings, "/v1/embeddings"},
	{"GET", "/models", routeList, ask.Chat, "/v1/models"},
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
	return nil, near
}

// query returns the part of a query that is passed on: only beta=true, which
// Claude Code sends.
func query(target []byte) string {
	if _, q, _ := bytes.Cut(target, []byte{'?'}); string(q) == "beta=true" {
		return "beta=true"
	}
	return ""
}
