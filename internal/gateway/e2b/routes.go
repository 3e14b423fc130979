package e2b

import (
	"net/http"
	"strings"
)

// routes are the operations of the control plane.
func routes() map[string]func(*call) error {
	return map[string]func(*call) error{
		"POST /sandboxes":                 (*call).create,
		"POST /v2/sandboxes":              (*call).create,
		"GET /sandboxes":                  (*call).list,
		"GET /v2/sandboxes":               (*call).list,
		"GET /sandboxes/metrics":          (*call).manyMetrics,
		"GET /sandboxes/{id}":             (*call).get,
		"DELETE /sandboxes/{id}":          (*call).kill,
		"POST /sandboxes/{id}/timeout":    (*call).setTimeout,
		"POST /sandboxes/{id}/refreshes":  (*call).refresh,
		"POST /sandboxes/{id}/connect":    (*call).connect,
		"POST /v2/sandboxes/{id}/connect": (*call).connect,
		"POST /sandboxes/{id}/pause":      (*call).pause,
		"POST /sandboxes/{id}/resume":     (*call).resume,
		"GET /sandboxes/{id}/metrics":     (*call).metrics,
		"GET /sandboxes/{id}/logs":        (*call).logs,
		"GET /v2/sandboxes/{id}/logs":     (*call).logs,
		"POST /sandboxes/{id}/snapshots":  (*call).snapshot,
		"GET /snapshots":                  (*call).snapshots,
		"GET /templates":                  (*call).templates,
		"GET /templates/aliases/{alias}":  (*call).templateAlias,
		"DELETE /templates/{template}":    (*call).removeTemplate,
		"POST /sandboxes/{id}/fork":       refused(noFork),
		"PUT /sandboxes/{id}/network":     refused(noNetwork),
		"/":                               (*call).unknown,
	}
}

// noFork and noNetwork are why operations on a sandbox are refused.
const (
	noFork    = "a fork with memory cannot be made: create a snapshot, and sandboxes from it"
	noNetwork = "what a sandbox reaches is fixed when it is created: see network of create"
)

// notServed are the beginnings of paths whose operations are refused, with the reason.
var notServed = map[string]string{
	"/templates":     noBuilds,
	"/v2/templates":  noBuilds,
	"/v3/templates":  noBuilds,
	"/volumes":       noVolumes,
	"/volumecontent": noVolumes,
	"/secrets":       "secrets are the operator's: see secrets in Atoll's configuration",
	"/nodes":         "this is no cluster",
	"/teams":         noTeams,
	"/api-keys":      noTeams,
	"/access-tokens": noTeams,
}

const (
	noBuilds  = "templates are not built here: the operator names images in e2b.templates, and snapshots are templates"
	noVolumes = "there are no volumes: use a snapshot, or send files"
	noTeams   = "accounts and keys are Atoll's: see atoll token create --e2b"
)

// refused is an operation that is refused.
func refused(why string) func(*call) error {
	return func(*call) error { return &fault{http.StatusNotImplemented, why} }
}

func (c *call) unknown() error {
	for beginning, why := range notServed {
		if rest, ok := strings.CutPrefix(c.r.URL.Path, beginning); ok && (rest == "" || rest[0] == '/') {
			return refused(why)(c)
		}
	}
	return &fault{http.StatusNotFound, "there is no operation " + c.r.Method + " at this path"}
}
