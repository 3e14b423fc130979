package litellm_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/atoll-run/atoll/internal/model/litellm"
	"github.com/atoll-run/atoll/internal/model/usage"
	"github.com/atoll-run/atoll/internal/secret"
	scripted "github.com/atoll-run/atoll/internal/testkit/litellmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const master = "sk-master-0123456789"

func serve(t *testing.T, o scripted.Options) (*scripted.Server, *litellm.Client) {
	t.Helper()
	o.MasterKey = master
	s, err := scripted.Listen(t.Context(), "tcp", "127.0.0.1:0", o)
	if err != nil {
		t.Fatal(err)
	}
	return s, client(t, s, master)
}

func client(t *testing.T, s *scripted.Server, key string) *litellm.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = s.Close()
	})
	return litellm.New(litellm.Options{URL: s.URL() + "/", Key: secret.Literal{Value: secret.New(key)}, HTTP: transport})
}

func row(i int, user string, at time.Time) scripted.Row {
	return scripted.Row{RequestID: fmt.Sprint("id-", i), Spend: 0.0000105, EndUser: user, StartTime: at.Format(time.RFC3339Nano), PromptTokens: 7, CompletionTokens: 2,
		Metadata: map[string]any{"spend_logs_metadata": map[string]any{"req": fmt.Sprint("req-", i), "run_id": "run-1"}}}
}

func TestSpendLogs(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	for name, old := range map[string]bool{"v2": false, "before v2": true} {
		t.Run(name, func(t *testing.T) {
			s, c := serve(t, scripted.Options{Old: old})
			for i := range 2500 {
				s.Add(row(i, "alice", now.Add(time.Duration(i)*time.Millisecond)))
			}
			s.Add(row(9001, "bob", now))
			s.Add(row(9002, "alice", now.AddDate(0, 0, -3)))
			rows, err := c.SpendLogs(t.Context(), litellm.Query{EndUser: "alice", Since: now.Add(-time.Hour), Until: now.Add(time.Hour)})
			if err != nil || len(rows) != 2500 {
				t.Fatalf("%d rows, %v", len(rows), err)
			}
			want := litellm.Row{RequestID: "id-0", Req: "req-0", Run: "run-1", EndUser: "alice", MicroUSD: 11, Prompt: 7, Complete: 2, Start: now}
			if diff := cmp.Diff(want, rows[0]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPrices(t *testing.T) {
	_, c := serve(t, scripted.Options{Models: map[string]scripted.Model{"m": {Input: 3e-06, Output: 1.5e-05}, "unpriced": {}}})
	prices, err := c.Prices(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]usage.Price{"m": {Input: 3_000_000, CachedInput: 300_000, CacheWrite: 3_000_000, Output: 15_000_000}}
	if diff := cmp.Diff(want, prices); diff != "" {
		t.Error(diff)
	}
}

func TestARunsKey(t *testing.T) {
	s, c := serve(t, scripted.Options{Models: map[string]scripted.Model{"m": {Input: 1}}})
	key, err := c.MakeRunKey(t.Context(), litellm.KeyRequest{Run: "run-1", Account: "alice", MicroUSD: 1_000_000, Life: time.Hour, Models: []string{"m"}})
	if err != nil {
		t.Fatal(err)
	}
	value, err := key.Read(t.Context())
	if err != nil || len(s.Keys()) != 1 {
		t.Fatalf("%v, %v", s.Keys(), err)
	}
	if status := chat(t, s, value.Reveal()); status != http.StatusOK {
		t.Errorf("status %d", status)
	}
	if status := chat(t, s, value.Reveal()); status != http.StatusTooManyRequests { // it spent its budget
		t.Errorf("status %d over budget", status)
	}
	for range 2 {
		if err := key.Delete(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if _, err := key.Read(t.Context()); err == nil || len(s.Keys()) != 0 {
		t.Errorf("%v left, %v", s.Keys(), err)
	}
	if status := chat(t, s, value.Reveal()); status != http.StatusUnauthorized {
		t.Errorf("status %d after the end", status)
	}
}

func chat(t *testing.T, s *scripted.Server, key string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), "POST", s.URL()+"/v1/chat/completions", strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"hello"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+key)
	request.Close = true
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// The server echoes the key it was sent; no error may.
func TestErrorsDoNotShowTheKey(t *testing.T) {
	s, _ := serve(t, scripted.Options{})
	_, err := client(t, s, "sk-wrong-0123456789").Prices(t.Context())
	if err == nil || strings.Contains(err.Error(), "sk-wrong") || !strings.Contains(err.Error(), "401") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := client(t, s, master).SpendLogs(ctx, litellm.Query{EndUser: "alice"}); err == nil || strings.Contains(err.Error(), "alice") {
		t.Errorf("%v", err)
	}
}

// Calls with much input have prices of their own; of several deployments the dearest
// counts.
func TestPricesOfLongCalls(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"data":[
			{"model_name":"m","model_info":{"input_cost_per_token":1e-06,"output_cost_per_token":5e-06,"input_cost_per_token_above_200k_tokens":2e-06,"output_cost_per_token_above_200k_tokens":8e-06}},
			{"model_name":"m","model_info":{"input_cost_per_token":1e-06,"output_cost_per_token":5e-06,"input_cost_per_token_above_128k_tokens":3e-06}},
			{"model_name":"n","model_info":{"input_cost_per_token":1e-06,"output_cost_per_token":5e-06,"input_cost_per_token_above_200k_tokens":null}}]}`)
	}))
	defer server.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	prices, err := litellm.New(litellm.Options{URL: server.URL, Key: secret.Literal{Value: secret.New("sk-0123456789")}, HTTP: transport}).Prices(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	plain := usage.Price{Input: 1_000_000, CachedInput: 1_000_000, CacheWrite: 1_000_000, Output: 5_000_000}
	long := plain
	long.Long = usage.Long{Over: 128_000, Input: 3_000_000, CachedInput: 1_000_000, CacheWrite: 3_000_000, Output: 8_000_000}
	if diff := cmp.Diff(map[string]usage.Price{"m": long, "n": plain}, prices); diff != "" {
		t.Error(diff)
	}
}
