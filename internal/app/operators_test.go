package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/client"
	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/gateway/serve"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// logLines is the log of a gateway, in JSON, as it is written.
type logLines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// of returns the lines with a message and a run's id.
func (l *logLines) of(message, run string) (found []map[string]any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.SplitSeq(strings.TrimSpace(l.b.String()), "\n") {
		var m map[string]any
		if json.Unmarshal([]byte(line), &m) == nil && m["msg"] == message && (run == "" || m["run"] == run) {
			found = append(found, m)
		}
	}
	return found
}

// serveHere serves an installation in this process, with its log.
func (s *site) serveHere() (*client.Client, *logLines) {
	s.t.Helper()
	log := &logLines{}
	a, err := app.Open(s.t.Context(), provide.LoadOptions{Getenv: s.getenv, ConfigPath: s.configFile(), Logger: slog.New(slog.NewJSONHandler(log, nil))})
	if err != nil {
		s.t.Fatal(err)
	}
	g, err := serve.Open(s.t.Context(), a.Parts(), serve.Options{Listen: []string{"127.0.0.1:0"}})
	if err != nil {
		a.Close()
		s.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(s.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- g.Serve(ctx) }()
	c, err := client.New(client.Options{Socket: filepath.Join(s.state, serve.Socket)})
	if err != nil {
		s.t.Error(err)
	}
	s.t.Cleanup(func() {
		c.Close()
		stop()
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
		a.Close()
	})
	return c, log
}

// scrape reads the metrics over the owner's socket.
func (s *site) scrape() string {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://gateway/metrics", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(s.state, serve.Socket))
	}}
	answer, err := (&http.Client{Transport: transport, Timeout: patience}).Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(answer.Body); err != nil || answer.StatusCode != http.StatusOK {
		s.t.Fatalf("%d, %v: %s", answer.StatusCode, err, b.String())
	}
	return b.String()
}

// withCaller adds a variant that asks a model once, and one that fails.
func withCaller(s *site) {
	script := `curl -s -o /tmp/a -H 'Content-Type: application/json' -d '{"model":"m","messages":[{"role":"user","content":"hi"}]}' http://127.0.0.1:8080/v1/chat/completions && echo done`
	s.set("runs.variants.caller", map[string]any{"name": "Caller", "argv": []string{"/bin/sh", "-c", script}, "read": "text"})
	s.set("runs.variants.broken", map[string]any{"name": "Broken", "argv": []string{"/bin/sh", "-c", "exit 3"}, "read": "text"})
}

// What happens in a gateway is counted, with labels of fixed sets, and the life of
// each run is in the log under the ids that its caller knows. Prometheus accepts what
// is scraped, and every metric of the dashboard and the alerts exists.
func TestOperatorsSee(t *testing.T) {
	t.Parallel()
	s := linuxSite(t)
	withLiteLLM(t, s)
	withCaller(s)
	c, log := s.serveHere()
	good := finished(t, c, &api.RunRequest{GraphID: "caller", Message: "ask a model, secret-word", Account: "acme"})
	bad := finished(t, c, &api.RunRequest{GraphID: "broken", Message: "fail"})
	eventually(t, "the end of both runs is not in the log", func() bool { return len(log.of("run over", "")) == 2 })
	t.Run("log", func(t *testing.T) { checkRunLog(t, log, good, bad) })
	t.Run("api", func(t *testing.T) { checkGroundwork(t, c, good, bad) })
	text := s.scrape()
	t.Run("metrics", func(t *testing.T) { checkMetrics(t, text, good.ID, "acme") })
	t.Run("promtool", func(t *testing.T) { checkWithPromtool(t, text) })
	t.Run("dashboard", func(t *testing.T) { checkNamedMetrics(t, text) })
}

func finished(t *testing.T, c *client.Client, q *api.RunRequest) *api.Run {
	t.Helper()
	begun, err := c.Start(t.Context(), q, "")
	if err != nil {
		t.Fatal(err)
	}
	over, err := c.Events(t.Context(), begun.ID, 0, func(api.Event) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return over
}

func checkRunLog(t *testing.T, log *logLines, good, bad *api.Run) {
	t.Helper()
	for message, want := range map[string]string{"run begun": "variant", "sandbox started": "took", "sandbox removed": "lived", "run over": "took"} {
		lines := log.of(message, good.ID)
		if len(lines) != 1 || lines[0][want] == nil || lines[0]["account"] != "acme" || !strings.HasPrefix(lines[0]["request"].(string), "req-") {
			t.Errorf("%s: %v", message, lines)
		}
	}
	if over := log.of("run over", good.ID); len(over) != 1 || over[0]["state"] != "done" || over[0]["microUsd"] == 0.0 {
		t.Errorf("%v", over)
	}
	if over := log.of("run over", bad.ID); len(over) != 1 || over[0]["state"] != "failed" || over[0]["code"] != "agent_failed" {
		t.Errorf("%v", over)
	}
	if strings.Contains(log.b.String(), "secret-word") {
		t.Error("the log has what was asked")
	}
}

func checkMetrics(t *testing.T, text string, never ...string) {
	t.Helper()
	for _, want := range []string{
		`atoll_runs_total{state="done",code=""} 1`, `atoll_runs_total{state="failed",code="agent_failed"} 1`, `atoll_run_duration_seconds_count{state="done"} 1`,
		`atoll_sandbox_starts_total{backend="linux",verb="create",result="ok"} 2`, `atoll_sandbox_start_seconds_count{backend="linux",verb="create"} 2`,
		`atoll_sandboxes_removed_total{backend="linux"} 2`, `atoll_llm_requests_total{dialect="chat",status="200"} 1`, `atoll_gateway_ready 1`, `atoll_run_queue_waiting 0`,
		`atoll_build_info{version="`, `atoll_log_lines_total{level="error"} 0`, `atoll_commands_total 2`,
	} {
		if !strings.Contains(text, "\n"+want) {
			t.Errorf("%s is missing", want)
		}
	}
	for _, id := range never {
		if strings.Contains(text, id) {
			t.Errorf("the metrics have %s", id)
		}
	}
}

// deployDir has the files for Prometheus and Grafana.
const deployDir = "../../deploy"

// checkWithPromtool has Prometheus's own tool read the alerts and what was scraped.
func checkWithPromtool(t *testing.T, text string) {
	t.Helper()
	promtool := need.Program(t, "promtool", "prometheus")
	for _, args := range [][]string{{"check", "rules", deployDir + "/prometheus/atoll-alerts.yml"}, {"check", "config", "--syntax-only", deployDir + "/prometheus/prometheus.yml"}, {"check", "metrics"}} {
		cmd := exec.CommandContext(t.Context(), promtool, args...)
		cmd.Stdin = strings.NewReader(text)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %v: %s", args, err, out)
		}
	}
}

var metricName = regexp.MustCompile(`\b(atoll_[a-z_]+|process_[a-z_]+|go_[a-z_]+)`)

// checkNamedMetrics looks for every metric that the dashboard and the alerts name.
func checkNamedMetrics(t *testing.T, text string) {
	t.Helper()
	for _, file := range []string{"prometheus/atoll-alerts.yml", "grafana/atoll.json"} {
		data, err := os.ReadFile(filepath.Join(deployDir, file))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, ".json") && !json.Valid(data) {
			t.Errorf("%s is no JSON", file)
		}
		names := metricName.FindAllString(string(data), -1)
		if len(names) < 10 {
			t.Errorf("%s names %d metrics", file, len(names))
		}
		for _, name := range names {
			if !strings.Contains(text, "# TYPE "+strings.TrimSuffix(name, "_bucket")+" ") {
				t.Errorf("%s: there is no metric %s", file, name)
			}
		}
	}
}

// checkGroundwork asks for what pages about runs, costs and the audit log show.
func checkGroundwork(t *testing.T, c *client.Client, good, bad *api.Run) {
	t.Helper()
	failed, err := c.Runs(t.Context(), api.RunQuery{State: "failed", Fields: "summary", Text: "FAIL"})
	if err != nil || failed.Total != 1 || len(failed.Runs) != 1 || failed.Runs[0].ID != bad.ID || failed.Runs[0].Task != "fail" || failed.Runs[0].Agent != "main" {
		t.Errorf("%+v, %v", failed, err)
	}
	calls, err := c.RunCalls(t.Context(), good.ID)
	if err != nil || len(calls.Calls) != 1 || calls.Calls[0].Asked != "m" || calls.Calls[0].Status != http.StatusOK || calls.Calls[0].MicroUSD != good.Bill.MicroUSD {
		t.Errorf("%+v, %v", calls, err)
	}
	series, err := c.CostSeries(t.Context(), api.SeriesQuery{By: "account", Bucket: "hour"})
	if err != nil || len(series.Points) == 0 || series.Points[0].Key != "acme" || series.Points[0].MicroUSD != good.Bill.MicroUSD {
		t.Errorf("%+v, %v", series, err)
	}
	variants, err := c.Variants(t.Context())
	if err != nil || !slices.ContainsFunc(variants.Variants, func(v api.Variant) bool {
		return v.ID == "caller" && v.Name == "Caller" && v.Timeout == 600 && v.Unavailable == ""
	}) {
		t.Errorf("%+v, %v", variants, err)
	}
	if found, err := c.Doctor(t.Context()); err != nil || !slices.ContainsFunc(found.Checks, func(d api.DoctorCheck) bool { return d.Status == "ok" && d.Name != "" }) {
		t.Errorf("%+v, %v", found, err)
	}
	if tokens, err := c.Tokens(t.Context()); err != nil || len(tokens.Tokens) != 0 { // that of the state directory is not stored
		t.Errorf("%+v, %v", tokens, err)
	}
	if models, err := c.Models(t.Context()); err != nil || models.Models == nil {
		t.Errorf("%+v, %v", models, err)
	}
	if log, err := c.Audit(t.Context(), api.AuditQuery{Kind: "model,git", Run: good.ID}); err != nil || len(log.Records) != 1 {
		t.Errorf("%+v, %v", log, err)
	}
	if whole, err := c.VerifyAudit(t.Context()); err != nil || !whole.OK || whole.Segments == 0 {
		t.Errorf("%+v, %v", whole, err)
	}
}
