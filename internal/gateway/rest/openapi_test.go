package rest_test

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/rest"
)

// golden is where the document is kept. ATOLL_UPDATE=1 writes it anew.
var golden = filepath.Join("..", "..", "..", "api", "openapi.json")

func TestOpenAPIGolden(t *testing.T) {
	o := newServer(t, nil)
	got := append(o.ask("", http.MethodGet, "/openapi.json", nil).body, '\n')
	if os.Getenv("ATOLL_UPDATE") != "" {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("the document is not the one that is kept: run this test with ATOLL_UPDATE=1 and look at the difference")
	}
}

// document is as much of OpenAPI 3.1 as the checks below look at.
type document struct {
	OpenAPI string `json:"openapi"`
	Info    struct{ Title, Version string }
	Paths   map[string]map[string]struct {
		OperationID string `json:"operationId"`
		Summary     string
		Parameters  []struct {
			Name, In string
			Required bool
		}
		Responses map[string]struct{ Description string }
	} `json:"paths"`
	Components struct {
		Schemas map[string]map[string]any `json:"schemas"`
	} `json:"components"`
}

// The document keeps the rules of OpenAPI, and has every route and nothing else.
func TestOpenAPIIsValid(t *testing.T) {
	o := newServer(t, nil)
	text := o.ask("", http.MethodGet, "/openapi.json", nil).body
	var d document
	if err := json.Unmarshal(text, &d, json.MatchCaseInsensitiveNames(true)); err != nil {
		t.Fatal(err)
	}
	if d.OpenAPI != "3.1.0" || d.Info.Title == "" || d.Info.Version == "" {
		t.Errorf("%+v", d.Info)
	}
	var ids, routes []string
	for path, operations := range d.Paths {
		for method, op := range operations {
			ids, routes = append(ids, op.OperationID), append(routes, strings.ToUpper(method)+" "+path)
			if op.Summary == "" || op.Responses["default"].Description == "" || op.Responses["200"].Description == "" {
				t.Errorf("%s %s: %+v", method, path, op)
			}
			for _, p := range op.Parameters {
				if inPath := strings.Contains(path, "{"+p.Name+"}"); inPath != (p.In == "path") || p.In == "path" && !p.Required {
					t.Errorf("%s %s: parameter %+v", method, path, p)
				}
			}
			for part := range strings.SplitSeq(path, "/") {
				if strings.HasPrefix(part, "{") && !slices.ContainsFunc(op.Parameters, func(p struct {
					Name, In string
					Required bool
				}) bool {
					return "{"+p.Name+"}" == part
				}) {
					t.Errorf("%s %s: %s is not declared", method, path, part)
				}
			}
		}
	}
	slices.Sort(ids)
	if len(slices.Compact(slices.Clone(ids))) != len(ids) {
		t.Errorf("operations share an id: %v", ids)
	}
	slices.Sort(routes)
	want := append(o.rest.Patterns(), "DELETE /mcp", "GET /mcp", "POST /mcp", "GET /api/v1/live", "GET /api/v1/sandboxes/{id}/processes/{process}/terminal")
	if slices.Sort(want); !slices.Equal(routes, want) {
		t.Errorf("routes %v, want %v", routes, want)
	}
	for _, ref := range strings.Split(string(text), `"$ref": "`)[1:] {
		name, _, _ := strings.Cut(strings.TrimPrefix(ref, "#/components/schemas/"), `"`)
		if d.Components.Schemas[name] == nil {
			t.Errorf("%s is referred to and not there", name)
		}
	}
}

// What the schemas require is what answers have.
func TestInvariant_CATALOG_FROM_API(t *testing.T) {
	o := newServer(t, func(o *rest.Options) {
		o.Agents = append(o.Agents, list{{GraphID: "langgraph:poet", Name: "Poet", Description: "Elsewhere."}, {GraphID: "sandbox:agent", Name: "Other", Description: "Hidden."}})
	})
	a := o.ask("reader", http.MethodGet, "/api/v1/ai/agents", nil)
	const want = `{"agents":[{"graphId":"sandbox:agent","name":"Script","description":"A shell script."},{"graphId":"langgraph:poet","name":"Poet","description":"Elsewhere."}]}`
	if a.StatusCode != http.StatusOK || string(a.body) != want {
		t.Errorf("%s\nwant %s", a.body, want)
	}
	into[api.Agents](t, a, http.StatusOK)
	problem(t, o.ask("nobody", http.MethodGet, "/api/v1/ai/agents", nil), http.StatusUnauthorized, "unauthorized")
}
