package app_test

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/client"
)

// traceCollector receives OTLP over HTTP and decodes it.
type traceCollector struct {
	*httptest.Server
	mu    sync.Mutex
	spans []*tracepb.Span
}

func newTraceCollector(t *testing.T) *traceCollector {
	t.Helper()
	c := &traceCollector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var got tracepb.TracesData
		if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &got) != nil {
			t.Errorf("%s: %v", r.URL, err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, of := range got.GetResourceSpans() {
			for _, s := range of.GetScopeSpans() {
				c.spans = append(c.spans, s.GetSpans()...)
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// named returns the spans of a trace whose names begin so.
func (c *traceCollector) named(trace, prefix string) (found []*tracepb.Span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if hex.EncodeToString(s.GetTraceId()) == trace && strings.HasPrefix(s.GetName(), prefix) {
			found = append(found, s)
		}
	}
	return found
}

// A run that is given over HTTP within a trace is a span of it, with its calls of
// models, its sandbox and its push below; what was said is in none of them.
func TestARunIsATraceAtTheCollector(t *testing.T) {
	s := newRelayStage(t)
	collector := newTraceCollector(t)
	s.set("gateway.traces", collector.URL+"/v1/traces")
	withLiteLLM(t, s.site)
	s.set("runs.variants.worker", map[string]any{"name": "Worker", "read": "text", "argv": []string{"/bin/sh", "-c",
		`curl -s -o /tmp/a -H 'Content-Type: application/json' -d '{"model":"m","messages":[{"role":"user","content":"hi"}]}' http://127.0.0.1:8080/v1/chat/completions && echo x > new && git add -A && ` + asAgent + `commit -qm work && echo done`}})
	c, _ := s.serveHere()
	const trace, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	over := finishedIn(t, c, trace, parent, &api.RunRequest{GraphID: "worker", Message: "secret-word", BranchName: "traced"})
	if over.Error != nil || over.Delivery == nil || over.Delivery.Pull == "" {
		t.Fatalf("%+v, %+v", over, over.Delivery)
	}
	eventually(t, "not all spans came", func() bool {
		return len(collector.named(trace, "run worker")) == 1 && len(collector.named(trace, "chat ")) == 1
	})
	run := collector.named(trace, "run worker")[0]
	if hex.EncodeToString(run.GetParentSpanId()) != parent || run.GetStatus().GetMessage() != "" {
		t.Errorf("%v", run)
	}
	for _, name := range []string{"sandbox create", "push", "chat m"} {
		spans := collector.named(trace, name)
		if len(spans) != 1 || string(spans[0].GetParentSpanId()) != string(run.GetSpanId()) || spans[0].GetEndTimeUnixNano() <= spans[0].GetStartTimeUnixNano() {
			t.Errorf("%s: %v", name, spans)
		}
	}
	for _, span := range collector.named(trace, "") {
		if strings.Contains(span.String(), "secret-word") || strings.Contains(span.String(), masterKey) {
			t.Errorf("%v", span)
		}
	}
}

// finishedIn carries out a run within a trace.
func finishedIn(t *testing.T, c *client.Client, trace, parent string, q *api.RunRequest) *api.Run {
	t.Helper()
	begun, err := c.Start(client.WithTraceParent(t.Context(), "00-"+trace+"-"+parent+"-01"), q, "")
	if err != nil {
		t.Fatal(err)
	}
	over, err := c.Events(t.Context(), begun.ID, 0, func(api.Event) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return over
}
