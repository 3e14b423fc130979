// Package tracing sends what runs and tasks do to a collector of OpenTelemetry, as
// spans of a trace: the run, its calls of models and tools, its sandbox's start and its
// push. Spans hold no prompt, answer, argument or credential. They wait in a queue of
// a fixed size, and are dropped when it is full: a collector that is slow or gone never
// holds up a run.
//
// The ids of a run's trace and span depend on its id alone, unless its caller names a
// trace, so they are the same in the header traceparent of its calls of models.
package tracing

import (
	"context"
	"encoding/hex"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/atoll-run/atoll/internal/audit/traceparent"
)

// Tracer makes spans. A nil Tracer makes none.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	mu       sync.Mutex
	active   map[string]trace.SpanContext // of work under way, by the id of its run
}

// Work is a run or a task, which is the parent of what is done for it.
type Work struct {
	Name   string
	Run    string
	Trace  string // id of its trace; "" is one of its own
	Parent string // header traceparent of the request; "" if there was none
	Attributes
}

// Attributes are the members of a span; empty ones are left out.
type Attributes map[string]any

// Span is work under way. A nil Span is none.
type Span struct {
	tracer *Tracer
	run    string
	span   trace.Span
}

// Begin begins the span of a run.
func (t *Tracer) Begin(w *Work) *Span {
	if t == nil {
		return nil
	}
	ctx := context.WithValue(parentOf(w), workKey{}, w)
	_, span := t.tracer.Start(ctx, clip(w.Name), trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(list(w.Attributes)...))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.active[w.Run] = span.SpanContext()
	return &Span{t, w.Run, span}
}

// End ends the span. A code says why the work failed; "" that it did not.
func (s *Span) End(code string, more Attributes) {
	if s == nil {
		return
	}
	s.span.SetAttributes(list(more)...)
	if code != "" {
		s.span.SetAttributes(attribute.String("error.type", clip(code)))
		s.span.SetStatus(codes.Error, clip(code))
	}
	s.span.End()
	s.tracer.mu.Lock()
	defer s.tracer.mu.Unlock()
	delete(s.tracer.active, s.run)
}

// Done is something that was done for a run, and is over.
type Done struct {
	Name   string
	Run    string
	Trace  string // id of the run's trace; "" is that of the run itself
	Begun  time.Time
	Took   time.Duration
	Error  string // why it failed; "" if it did not
	Client bool   // it was a request to a server
	Attributes
}

// Record makes the span of something that is over. What belongs to no run has none.
func (t *Tracer) Record(d *Done) {
	if t == nil || d.Run == "" {
		return
	}
	kind := trace.SpanKindInternal
	if d.Client {
		kind = trace.SpanKindClient
	}
	ctx := trace.ContextWithRemoteSpanContext(context.Background(), t.contextOf(d))
	_, span := t.tracer.Start(ctx, clip(d.Name), trace.WithTimestamp(d.Begun), trace.WithSpanKind(kind), trace.WithAttributes(list(d.Attributes)...))
	if d.Error != "" {
		span.SetAttributes(attribute.String("error.type", clip(d.Error)))
		span.SetStatus(codes.Error, clip(d.Error))
	}
	span.End(trace.WithTimestamp(d.Begun.Add(d.Took)))
}

// Tool makes the span of a tool call that has just returned.
func (t *Tracer) Tool(run, name string, tookMs float64, isError bool) {
	if t == nil {
		return
	}
	took, failed := time.Duration(tookMs*float64(time.Millisecond)), ""
	if isError {
		failed = "tool_error"
	}
	t.Record(&Done{Name: "tool " + name, Run: run, Begun: time.Now().Add(-took), Took: took, Error: failed, Attributes: Attributes{
		"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "langfuse.observation.type": "tool",
	}})
}

// contextOf returns the span of the run that something was done for. Of a run that is
// over, or under way in another process, it is derived from its id.
func (t *Tracer) contextOf(d *Done) trace.SpanContext {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c, ok := t.active[d.Run]; ok {
		return c
	}
	w := &Work{Run: d.Run, Trace: d.Trace}
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: w.traceID(), SpanID: w.spanID(), TraceFlags: trace.FlagsSampled, Remote: true})
}

// Close sends what waits, within the context's time.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

// parentOf returns a context with the span that the caller of a run names.
func parentOf(w *Work) context.Context {
	ctx := context.Background()
	if id := traceparent.TraceID(w.Parent); id == "" || w.Trace != "" && id != w.Trace {
		return ctx
	}
	config := trace.SpanContextConfig{Remote: true}
	_, _ = hex.Decode(config.TraceID[:], []byte(w.Parent[3:35])) // TraceID checked it
	_, _ = hex.Decode(config.SpanID[:], []byte(w.Parent[36:52]))
	var flags [1]byte
	_, _ = hex.Decode(flags[:], []byte(w.Parent[53:55]))
	config.TraceFlags = trace.TraceFlags(flags[0]) & trace.FlagsSampled
	return trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(config))
}
