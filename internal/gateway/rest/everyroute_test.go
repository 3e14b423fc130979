package rest_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// Every route but those of public needs a token, and one that its scope includes; what is unknown
// in a query is refused.
func TestEveryRoute(t *testing.T) {
	o := newServer(t, nil)
	public := []string{"GET /health", "GET /ready", "GET /openapi.json", "POST /api/v1/ui/login"}
	for _, pattern := range o.rest.Patterns() {
		if slices.Contains(public, pattern) {
			continue
		}
		method, path, _ := strings.Cut(pattern, " ")
		path = strings.NewReplacer("{id}", "x", "{name}", "x", "{key}", "x", "{process}", "x", "{agent}", "x").Replace(path)
		problem(t, o.ask("", method, path, nil), http.StatusUnauthorized, "unauthorized")
		problem(t, o.ask("reader-of-nobody", method, path, nil), http.StatusUnauthorized, "unauthorized")
		if method != http.MethodGet && pattern != "POST /api/v1/ui/logout" {
			problem(t, o.ask("reader", method, path, nil), http.StatusForbidden, "forbidden")
		}
		if strings.HasPrefix(path, "/api/v1/sandboxes/x/") && method == http.MethodGet {
			if a := o.ask("alice", method, path+"?surprise=1", nil); a.StatusCode != http.StatusUnprocessableEntity && a.StatusCode != http.StatusNotFound {
				t.Errorf("%s: %d %s", pattern, a.StatusCode, a.body)
			}
		}
	}
}
