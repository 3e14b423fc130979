package app_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/run/execute"
	"github.com/atoll-run/atoll/internal/testkit/grouptest"
)

// bodies are what the operations on one sandbox are sent that have a body.
var bodies = map[string]string{
	"exec": `{"command":"true"}`, "extendSandbox": `{"timeoutSeconds":60}`, "forkSandbox": `{}`, "createSnapshot": `{"name":"x"}`,
	"startProcess": `{"command":"true"}`, "writeProcess": `{"end":true}`, "signalProcess": `{"signal":"SIGINT"}`, "resizeProcess": `{"rows":1,"cols":1}`,
	"moveFile": `{"from":"a","to":"b"}`, "makeDirectory": `{"path":"a"}`, "recreateSandbox": `{}`, "writeFile": "x", "writeArchive": "",
}

// askRoutes sends the requests of this test.
var askRoutes = &http.Client{Timeout: patience}

// operation is one of the document of the API.
type operation struct {
	OperationID string `json:"operationId"`
	Parameters  []struct {
		Name, In string
	}
	RequestBody *struct{} `json:"requestBody"`
}

// operationsOf returns the operations of the document whose path begins with a text.
func operationsOf(t *testing.T, beginning string) map[string]operation {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "api", "openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]map[string]operation
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	found := map[string]operation{}
	for path, methods := range document.Paths {
		for method, o := range methods {
			if strings.HasPrefix(path, beginning) {
				found[strings.ToUpper(method)+" "+path] = o
			}
		}
	}
	return found
}

// On every route of the document, what is another account's is not there: sandboxes,
// their processes, files and templates.
func TestInvariant_ROUTES_OF_ONE_ACCOUNT(t *testing.T) {
	t.Parallel()
	grouptest.Need(t)
	b := openBureau(linuxSite(t), execute.Options{})
	mine := restClient(b, access.Caller{Token: "a", Scope: access.Run, Account: "acme"})
	box, err := mine.CreateSandbox(t.Context(), &api.CreateSandbox{})
	if err != nil {
		t.Fatal(err)
	}
	process, err := mine.StartProcess(t.Context(), box.ID, &api.StartProcess{Command: "exec sleep 1000"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mine.CreateSnapshot(t.Context(), box.ID, "base"); err != nil {
		t.Fatal(err)
	}
	others := restServer(b, access.Caller{Token: "o", Scope: access.Admin, Account: "other"})
	operations := operationsOf(t, "/api/v1/sandboxes/{id}")
	if len(operations) < 25 {
		t.Fatalf("only %d operations were found", len(operations))
	}
	for _, id := range []string{box.ID, box.ContainerName} {
		for route, o := range operations {
			path := strings.NewReplacer("{id}", id, "{process}", process.ID).Replace(route)
			if status, code := send(t, others, path, &o); status != http.StatusNotFound || code != "sandbox_not_found" {
				t.Errorf("%s of another account: %d %s", route, status, code)
			}
		}
	}
	for route, o := range operationsOf(t, "/api/v1/templates/{name}") {
		if status, code := send(t, others, strings.Replace(route, "{name}", "base", 1), &o); status != http.StatusNotFound || code != "template_not_found" {
			t.Errorf("%s of another account: %d %s", route, status, code)
		}
	}
	for _, list := range []string{"GET /api/v1/sandboxes", "GET /api/v1/templates"} {
		if text := body(t, others, list); strings.Contains(text, box.ID) || strings.Contains(text, `"base"`) {
			t.Errorf("%s: %s", list, text)
		}
	}
	if p, err := mine.Process(t.Context(), box.ID, process.ID, 0); err != nil || !p.Running {
		t.Errorf("the process of its own account: %+v, %v", p, err)
	}
}

// send sends an operation what it needs, and returns the status and the problem's code.
func send(t *testing.T, base, route string, o *operation) (status int, code string) {
	t.Helper()
	method, path, _ := strings.Cut(route, " ")
	content, known := bodies[o.OperationID]
	if o.RequestBody != nil && !known {
		t.Errorf("%s has a body, and this test does not know one", o.OperationID)
	}
	for _, p := range o.Parameters {
		if p.In == "query" && p.Name == "path" {
			path += "?path=x"
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := askRoutes.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var p api.Problem
	text, err := io.ReadAll(answer.Body)
	if err != nil || json.NewDecoder(bytes.NewReader(text)).Decode(&p) != nil {
		t.Errorf("%s: %v: %s", route, err, text)
	}
	return answer.StatusCode, p.Code
}

// body returns what a route answers.
func body(t *testing.T, base, route string) string {
	t.Helper()
	method, path, _ := strings.Cut(route, " ")
	r, err := http.NewRequestWithContext(t.Context(), method, base+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := askRoutes.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
