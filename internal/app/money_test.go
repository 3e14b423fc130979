package app_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/model/billing"
	"github.com/atoll-run/atoll/internal/model/service"
	"github.com/atoll-run/atoll/internal/model/usage"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	scripted "github.com/atoll-run/atoll/internal/testkit/litellmtest"
)

const masterKey = "sk-master-0123456789"

// openMoney opens an installation whose models are at a scripted LiteLLM.
func openMoney(t *testing.T, more string) (*app.App, *scripted.Server) {
	t.Helper()
	upstream, err := scripted.Listen(t.Context(), "tcp", "127.0.0.1:0", scripted.Options{MasterKey: masterKey,
		Models: map[string]scripted.Model{"m": {Input: 1e-06, Output: 1e-05}, "dear": {Input: 1e-06, Output: 1e-05}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = upstream.Close() })
	dir := t.TempDir()
	file := filepath.Join(dir, "atoll.json5")
	text := fmt.Sprintf(`{llm: {providers: {litellm: {url: %q, keys: [{env: "LITELLM_MASTER_KEY"}]}}, %s}, agents: {defaults: {llm: {budgets: {run: {usd: 1.5}}}}}}`, upstream.URL(), more)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"ATOLL_STATE_DIR": filepath.Join(dir, "state"), "LITELLM_MASTER_KEY": masterKey, "DOCKER_HOST": "unix:///nowhere"}
	a, err := app.Open(t.Context(), provide.LoadOptions{Getenv: func(name string) string { return env[name] }, ConfigPath: file})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a, upstream
}

// A call goes through the ledger and LiteLLM, prices come from both, and the
// bill is LiteLLM's.
func TestMoneyFromPriceToBill(t *testing.T) {
	a, upstream := openMoney(t, `prices: {dear: {input: 100, output: 100}}`)
	ledger, err := a.Models.Ledger(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	llm, err := a.Config.LLM()
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Models.ReplacePrices(t.Context(), &llm); err != nil {
		t.Fatal(err)
	}
	for model, want := range map[string]int64{"m": 10 + 20, "dear": 1200} { // told by LiteLLM; configured
		r, err := ledger.Reserve(t.Context(), &usage.Call{ID: model, Subject: usage.Subject{Run: "run", Account: "acct"}, Model: model, InputTokens: 10, MaxOutputTokens: 10})
		if err != nil {
			t.Fatal(err)
		}
		ask(t, upstream, model)
		got, err := r.Settle(usage.Outcome{Tokens: usage.Tokens{Input: 10, Output: 2}, Status: 200})
		if err != nil || got.MicroUSD != want {
			t.Errorf("%s: %+v, %v; want %d", model, got, err, want)
		}
	}
	reports, err := a.Models.Reconcile(t.Context(), billing.Options{Since: time.Now().Add(-time.Hour), Until: time.Now().Add(time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	if r := reports["litellm"]; r == nil || r.Matched != 2 || r.Corrected != 2 || len(r.MissingLocal) != 0 {
		t.Errorf("%+v", r)
	}
}

func ask(t *testing.T, upstream *scripted.Server, model string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), "POST", upstream.URL()+"/v1/chat/completions", strings.NewReader(`{"model":"`+model+`","messages":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Close = true
	request.Header.Set("Authorization", "Bearer "+masterKey)
	request.Header.Set("x-litellm-end-user-id", "acct")
	request.Header.Set("x-litellm-spend-logs-metadata", `{"run_id":"run","req":"`+model+`"}`)
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
}

func TestBudgetsOfTheConfiguration(t *testing.T) {
	a, _ := openMoney(t, `budgets: {day: {usd: 50, tokens: 1000}}`)
	llm, err := a.Config.LLM()
	if err != nil {
		t.Fatal(err)
	}
	agent, err := a.Config.Resolve("")
	if err != nil {
		t.Fatal(err)
	}
	want := []usage.Limit{{Scope: usage.ScopeRun, MicroUSD: 1_500_000}, {Scope: usage.ScopeDay, MicroUSD: 50_000_000, Tokens: 1000}}
	if diff := cmp.Diff(want, service.Limits(&llm, &agent.LLM)); diff != "" {
		t.Error(diff)
	}
	pool, err := service.KeyPool(t.Context(), a.Settings, &llm.Providers[0])
	if err != nil {
		t.Fatal(err)
	}
	if key, err := pool.Pick(); err != nil || key.Value.Reveal() != masterKey {
		t.Errorf("%v, %v", key, err)
	}
}

func TestTheAuditLogIsTheInstallations(t *testing.T) {
	a, _ := openMoney(t, "")
	log, err := a.Models.AuditLog()
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Append(&audit.ModelRequest{Time: time.Now(), Dialect: "chat", Status: 403, Denied: "no grant"}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Models.Ledger(t.Context()); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if _, err := a.Models.Metrics().WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{`atoll_llm_requests_total{dialect="chat",status="403"} 1`, `atoll_llm_denied_total{dialect="chat"} 1`, "atoll_usage_reservations 0"} {
		if !strings.Contains(text.String(), line+"\n") {
			t.Errorf("no %s in\n%s", line, text.String())
		}
	}
	a.Close()
	report, err := audit.Verify(service.AuditDir(a.Settings), audit.VerifyOptions{})
	if err != nil || report.Records != 1 || len(report.Problems) != 0 {
		t.Errorf("%+v, %v", report, err)
	}
}
