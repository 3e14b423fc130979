package app_test

import (
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/agent/host"
	"github.com/atoll-run/atoll/internal/fakellm"
	"github.com/atoll-run/atoll/internal/testkit/litellmtest"
)

// remembering is an installation whose agent looks something up in other words
// than it was written down in, and whose LiteLLM makes vectors as "sense".
func remembering(t *testing.T, embeddings string) (*site, *litellmtest.Server) {
	t.Helper()
	s := linuxSite(t)
	upstream, err := litellmtest.Listen(t.Context(), "tcp", "127.0.0.1:0", litellmtest.Options{MasterKey: masterKey, Models: map[string]litellmtest.Model{
		"m": {Input: 1e-06, Output: 1e-05, Script: fakellm.Script{
			fakellm.Use("memory_search", `{"query":"whom to ask concerning an invoice"}`), fakellm.Say("done"),
		}},
		"sense": {Input: 1e-05},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = upstream.Close() })
	s.env["LITELLM_MASTER_KEY"] = masterKey
	s.set("llm.providers.litellm.url", upstream.URL())
	s.set("llm.providers.litellm.keys", []any{map[string]any{"env": "LITELLM_MASTER_KEY"}})
	s.set("llm.embeddings", embeddings)
	s.set("agents.defaults.model", "litellm/m")
	s.set("tools.sandbox.tools.alsoAllow", []string{"group:memory"})
	s.write(s.agent+"/MEMORY.md", "# People\nMaria owns the billing service.\n\n# Code\nTabs, never spaces.\n")
	return s, upstream
}

// Memories are found by meaning, with vectors that come through the proxy: they
// are part of the agent's bill.
func TestAgentRemembersByMeaning(t *testing.T) {
	s, upstream := remembering(t, "litellm/sense")
	e := s.send(t.Context(), host.Options{})
	if e.err != nil || e.out.Text != "done" || len(e.results()) != 1 || !strings.Contains(e.results()[0], "Maria") {
		t.Fatalf("%+v, %v: %q", e.out, e.err, e.results())
	}
	bill, vectors := e.bill(t), 0
	for _, row := range upstream.Rows() {
		if row.CallType == "aembedding" && row.Spend > 0 && row.CompletionTokens == 0 {
			vectors++
		}
	}
	if vectors != 1 || bill.Calls != 3 {
		t.Errorf("%d requests for vectors, %+v", vectors, bill)
	}
}

// A model of vectors that is not there leaves the words, and the agent is told.
func TestAgentRemembersByWordsIfItMust(t *testing.T) {
	s, _ := remembering(t, "litellm/gone")
	e := s.send(t.Context(), host.Options{})
	if e.err != nil || e.out.Text != "done" || len(e.results()) != 1 || !strings.Contains(e.results()[0], "compared by words only") {
		t.Errorf("%+v, %v: %q", e.out, e.err, e.results())
	}
}
