package rest_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/rest"
	"github.com/atoll-run/atoll/internal/logid"
)

// lines is a log that can be read while it is written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// The end of every run is logged, without what was said, and counted by its state.
func TestEndOfRunIsLogged(t *testing.T) {
	var log lines
	o := newServer(t, func(o *rest.Options) { o.Logger = slog.New(logid.NewHandler(slog.NewTextHandler(&log, nil))) })
	good, bad := o.start("alice", "echo hello-there"), o.start("bob", "exit 3")
	o.until("alice", good.ID, api.RunOver)
	o.until("bob", bad.ID, api.RunOver)
	for end := time.Now().Add(patience); strings.Count(log.String(), "run over") < 2 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		continue // it is logged a little after the receipt
	}
	text := log.String()
	for _, want := range []string{"run=" + good.ID, "account=alice", "state=done", "msg=\"run begun\"", "request=req-", "run=" + bad.ID, "state=failed"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing in %s", want, text)
		}
	}
	if strings.Contains(text, "hello-there") {
		t.Errorf("the log has content: %s", text)
	}
	counted := string(o.ask("root", http.MethodGet, "/metrics", nil).body)
	for _, want := range []string{`atoll_runs_total{state="done",code=""} 1`, `atoll_runs_total{state="failed",code="agent_failed"} 1`, "atoll_runs_running 0",
		`atoll_run_duration_seconds_count{state="done"} 1`, "atoll_run_wait_seconds_count 2"} {
		if !strings.Contains(counted, want) {
			t.Errorf("%s is missing in %s", want, counted)
		}
	}
}
