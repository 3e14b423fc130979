package app_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/run/execute"
)

// Agents of other services are in the catalogue and are given tasks over HTTP;
// whatever such a service does, the run ends with a code.
func TestExternalAgents(t *testing.T) {
	var sent, token string
	mux := http.NewServeMux()
	mux.HandleFunc("/poet", func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		sent, token = string(text), r.Header.Get("Authorization")
		_, _ = io.WriteString(w, `{"text":"a poem","usage":{"input":1,"output":2,"total":3}}`)
	})
	mux.HandleFunc("/fails", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"error":{"code":"tired","message":"not today"}}`)
	})
	mux.Handle("/away", http.RedirectHandler("/poet", http.StatusTemporaryRedirect))
	mux.HandleFunc("/nonsense", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") })
	mux.HandleFunc("/endless", func(w http.ResponseWriter, _ *http.Request) {
		for piece := strings.Repeat("x", 1<<20); ; {
			if _, err := io.WriteString(w, piece); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/silent", func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so that the server sees the caller go
		<-r.Context().Done()
	})
	service := httptest.NewServer(mux)
	defer service.Close()
	s := linuxSite(t)
	s.env["POET_TOKEN"] = "poet-secret"
	for _, name := range []string{"poet", "fails", "away", "nonsense", "endless", "silent"} {
		s.set("runs.external."+name+".url", service.URL+"/"+name)
	}
	s.set("runs.external.poet.token", map[string]any{"env": "POET_TOKEN"})
	s.set("runs.external.poet.description", "Writes poems.")
	s.set("runs.external.named.url", strings.Replace(service.URL, "127.0.0.1", "localhost.", 1)+"/poet")
	s.set("runs.external.silent.timeoutSeconds", 1)
	b := openBureau(s, execute.Options{})
	c := restClient(b, access.Caller{Token: "t", Scope: access.Run, Account: "acme"})
	agents, err := c.Agents(t.Context())
	if err != nil || !slices.Contains(agents.Agents, api.Agent{GraphID: "poet", Name: "poet", Description: "Writes poems."}) {
		t.Fatalf("%+v, %v", agents, err)
	}
	for graph, code := range map[string]string{
		"poet": "", "fails": "tired", "away": "external_refused", "nonsense": "invalid_output", "endless": "invalid_output", "silent": "timeout", "named": "external_unreachable",
	} {
		begun, err := c.Start(t.Context(), &api.RunRequest{GraphID: graph, Message: "about the sea"}, "")
		if err != nil {
			t.Fatal(graph, err)
		}
		over, err := c.Events(t.Context(), begun.ID, 0, func(api.Event) error { return nil })
		got := ""
		if over != nil && over.Error != nil {
			got = over.Error.Code
		}
		if err != nil || got != code || graph == "poet" && over.Text != "a poem" {
			t.Errorf("%s: %+v, %v", graph, over, err)
		}
	}
	if !strings.Contains(sent, `"content":"about the sea"`) || !strings.Contains(sent, `"account":"acme"`) || token != "Bearer poet-secret" {
		t.Errorf("%s, %s", sent, token)
	}
	_, err = c.Start(t.Context(), &api.RunRequest{GraphID: "poet", Message: "x", BranchName: "b"}, "")
	if err == nil {
		t.Error("commits were promised")
	}
}
