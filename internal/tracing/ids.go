package tracing

import (
	"context"
	"crypto/rand"
	"encoding/hex"

	"go.opentelemetry.io/otel/trace"

	"github.com/atoll-run/atoll/internal/audit/traceparent"
)

// workKey is the key of the Work whose span is begun.
type workKey struct{}

// ids gives the span of a run the ids that its calls of models name as their parent,
// and other spans random ones.
type ids struct{}

// NewIDs returns the ids of a span without a parent.
func (ids) NewIDs(ctx context.Context) (id trace.TraceID, span trace.SpanID) {
	if w, ok := ctx.Value(workKey{}).(*Work); ok {
		return w.traceID(), w.spanID()
	}
	_, _ = rand.Read(id[:]) // never fails
	_, _ = rand.Read(span[:])
	return id, span
}

// NewSpanID returns the id of a span with a parent.
func (ids) NewSpanID(ctx context.Context, _ trace.TraceID) (span trace.SpanID) {
	if w, ok := ctx.Value(workKey{}).(*Work); ok {
		return w.spanID()
	}
	_, _ = rand.Read(span[:])
	return span
}

func (w *Work) traceID() (id trace.TraceID) {
	text := w.Trace
	if !traceparent.IsID(text) {
		text = traceparent.TraceIDFor(w.Run)
	}
	_, _ = hex.Decode(id[:], []byte(text))
	return id
}

func (w *Work) spanID() (id trace.SpanID) {
	_, _ = hex.Decode(id[:], []byte(traceparent.SpanIDFor(w.Run)))
	return id
}
