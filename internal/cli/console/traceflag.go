package console

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/client"
	"github.com/atoll-run/atoll/internal/audit/traceparent"
	"github.com/atoll-run/atoll/internal/errhint"
)

// traceValue is the id of a trace, also as part of a traceparent.
type traceValue struct{ to *string }

// TraceFlag adds --trace.
func TraceFlag(cmd *cobra.Command, to *string) {
	cmd.Flags().Var(traceValue{to}, "trace", "`id` of an existing trace, or its traceparent (default: a new one)")
}

func (v traceValue) Type() string { return "string" }

func (v traceValue) String() string {
	if v.to == nil {
		return ""
	}
	return *v.to
}

func (v traceValue) Set(text string) error {
	id := cmp.Or(traceparent.TraceID(text), text)
	if !traceparent.IsID(id) {
		return errhint.With(fmt.Errorf("%.80q is not the id of a trace", text), "write 32 hexadecimal digits, or a whole traceparent")
	}
	*v.to = id
	return nil
}

// WithTrace has what is asked of a gateway belong to a trace, if there is one.
func WithTrace(ctx context.Context, id, run string) context.Context {
	if id == "" {
		return ctx
	}
	return client.WithTraceParent(ctx, traceparent.HeaderValue(id, run))
}
