package client

import "context"

type traceKey struct{}

// WithTraceParent returns a context whose requests carry a traceparent, in the form
// of the W3C's Trace Context.
func WithTraceParent(ctx context.Context, header string) context.Context {
	return context.WithValue(ctx, traceKey{}, header)
}

func traceParent(ctx context.Context) string {
	header, _ := ctx.Value(traceKey{}).(string)
	return header
}
