package tracing_test

import (
	"cmp"
	"context"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/atoll-run/atoll/internal/audit/traceparent"
	"github.com/atoll-run/atoll/internal/tracing"
)

// collector is a server of OTLP that decodes what it gets.
type collector struct {
	*httptest.Server
	mu    sync.Mutex
	spans map[string]*tracepb.Span
	hold  chan struct{} // requests wait until it is closed; nil does not wait
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{spans: map[string]*tracepb.Span{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.hold != nil {
			<-c.hold
		}
		body, err := io.ReadAll(r.Body)
		var got tracepb.TracesData // the same message as ExportTraceServiceRequest
		if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" || proto.Unmarshal(body, &got) != nil {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
		c.keep(t, &got)
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) keep(t *testing.T, got *tracepb.TracesData) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range got.GetResourceSpans() {
		if !strings.Contains(r.GetResource().String(), `"atoll"`) {
			t.Errorf("resource %v", r.GetResource())
		}
		for _, s := range r.GetScopeSpans() {
			for _, span := range s.GetSpans() {
				if len(span.GetTraceId()) != 16 || len(span.GetSpanId()) != 8 || span.GetEndTimeUnixNano() < span.GetStartTimeUnixNano() || span.GetName() == "" {
					t.Errorf("%v", span)
				}
				c.spans[span.GetName()] = span
			}
		}
	}
}

func open(t *testing.T, endpoint string) *tracing.Tracer {
	t.Helper()
	tracer, err := tracing.Open(t.Context(), tracing.Options{Endpoint: endpoint, Client: &http.Client{Timeout: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	return tracer
}

// A run is a trace whose ids are those of its calls of models; what is done for it is
// below it, also after its end.
func TestARunIsATrace(t *testing.T) {
	c := newCollector(t)
	tracer := open(t, c.URL+"/v1/traces")
	span := tracer.Begin(&tracing.Work{Name: "run agent", Run: "run-1", Attributes: tracing.Attributes{"atoll.run": "run-1", "empty": ""}})
	tracer.Record(&tracing.Done{Name: "chat m", Run: "run-1", Begun: time.Now().Add(-time.Second), Took: time.Second, Client: true, Attributes: tracing.Attributes{"n": int64(3)}})
	tracer.Tool("run-1", "exec\x1b[31m"+strings.Repeat("x", 5000), 12.5, true)
	span.End("timeout", nil)
	tracer.Record(&tracing.Done{Name: "push", Run: "run-1", Begun: time.Now()})
	tracer.Record(&tracing.Done{Name: "nobody's", Begun: time.Now()})
	if err := tracer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	run := c.spans["run agent"]
	if len(c.spans) != 4 || hex.EncodeToString(run.GetTraceId()) != traceparent.TraceIDFor("run-1") || hex.EncodeToString(run.GetSpanId()) != traceparent.SpanIDFor("run-1") || len(run.GetParentSpanId()) != 0 {
		t.Fatalf("%v", c.spans)
	}
	if run.GetStatus().GetMessage() != "timeout" || len(run.GetAttributes()) != 2 {
		t.Errorf("%v", run)
	}
	for name, s := range c.spans {
		if name != "run agent" && (string(s.GetTraceId()) != string(run.GetTraceId()) || string(s.GetParentSpanId()) != string(run.GetSpanId())) {
			t.Errorf("%s is not below the run: %v", name, s)
		}
		if len(name) > 210 || strings.Contains(name, "\x1b") {
			t.Errorf("%q is a name", name)
		}
	}
}

// A run is below the span of its caller, which decides whether it is recorded.
func TestTheCallersTraceGoesOn(t *testing.T) {
	c := newCollector(t)
	tracer := open(t, c.URL+"/v1/traces")
	const id, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	for name, flags := range map[string]string{"seen": "01", "unseen": "00"} {
		span := tracer.Begin(&tracing.Work{Name: name, Run: name, Trace: id, Parent: "00-" + id + "-" + parent + "-" + flags})
		tracer.Record(&tracing.Done{Name: "call of " + name, Run: name, Begun: time.Now()})
		span.End("", nil)
	}
	if err := tracer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	run := c.spans["seen"]
	if len(c.spans) != 2 || hex.EncodeToString(run.GetTraceId()) != id || hex.EncodeToString(run.GetParentSpanId()) != parent || c.spans["call of seen"] == nil {
		t.Errorf("%v", c.spans)
	}
}

// A collector that does not answer, or is not there, costs a run nothing: what does
// not fit into the queue is dropped.
func TestADeadCollectorHoldsNobodyUp(t *testing.T) {
	slow := newCollector(t)
	slow.hold = make(chan struct{})
	defer close(slow.hold)
	for _, endpoint := range []string{slow.URL + "/v1/traces", "http://127.0.0.1:1/v1/traces"} {
		tracer, begun := open(t, endpoint), time.Now()
		for range 3 * tracing.QueueSize {
			tracer.Record(&tracing.Done{Name: "chat", Run: "run-1", Begun: begun})
		}
		if took := time.Since(begun); took > 20*time.Second { // without a queue each would take the client's minute
			t.Errorf("%s: %v", endpoint, took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if begun = time.Now(); tracer.Close(ctx) == nil && endpoint == slow.URL {
			t.Error("closing waited for the collector")
		}
		cancel()
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("closing took %v", took)
		}
	}
}

func TestNoCollectorNoTracer(t *testing.T) {
	var tracer *tracing.Tracer
	tracer.Begin(&tracing.Work{Name: "run", Run: "r"}).End("x", nil)
	tracer.Tool("r", "t", 1, false)
	tracer.Record(&tracing.Done{Run: "r"})
	if err := tracer.Close(t.Context()); err != nil {
		t.Error(err)
	}
	for _, c := range []struct{ name, value, want string }{
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/", "http://c:4318/v1/traces"},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://c/x", "http://c/x"}, {"OTHER", "http://c", ""},
	} {
		env := map[string]string{c.name: c.value}
		if got := tracing.EndpointOf(func(name string) string { return env[name] }, ""); got != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
		if got := tracing.EndpointOf(func(name string) string { return env[name] }, "http://configured"); got != cmp.Or(c.want, "http://configured") {
			t.Errorf("%s and the configuration: %q", c.name, got)
		}
		env["OTEL_SDK_DISABLED"] = "true"
		if got := tracing.EndpointOf(func(name string) string { return env[name] }, "http://configured"); got != "" {
			t.Errorf("%s: %q", c.name, got)
		}
	}
	for _, wrong := range []string{"collector:4318", "grpc://c:4317", "http://"} {
		if _, err := tracing.Open(t.Context(), tracing.Options{Endpoint: wrong}); err == nil {
			t.Errorf("%q was accepted", wrong)
		}
	}
}
