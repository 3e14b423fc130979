package rest

import (
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/tracing"
)

// beginSpan begins the span of a run, below that of the request's caller.
func (s *Server) beginSpan(t *Task) *tracing.Span {
	return s.Tracer.Begin(&tracing.Work{Name: "run " + t.GraphID, Run: t.ID, Trace: t.Trace, Parent: t.Parent, Attributes: tracing.Attributes{
		"atoll.run": t.ID, "atoll.variant": t.GraphID, "atoll.agent": t.Agent, "vcs.ref.head.name": t.Branch, "user.id": t.Account,
		"langfuse.trace.name": "run " + t.GraphID, "langfuse.trace.metadata.run_id": t.ID,
	}})
}

// traceTool makes the span of a tool call that has returned.
func (s *Server) traceTool(id string, e *run.Event) {
	if e.Type == "tool_result" && e.Call != nil {
		s.Tracer.Tool(id, e.Call.Name, e.TookMs, e.IsError)
	}
}

// endSpan ends the span of a run with what it came to.
func endSpan(span *tracing.Span, r *run.Receipt, err error) {
	if r == nil {
		span.End(tracing.Code(err, "not_saved"), nil)
		return
	}
	span.End(run.MetricCode(r.Error), tracing.Attributes{
		"gen_ai.request.model": r.Model, "atoll.sandbox": r.Sandbox, "atoll.cost_microusd": r.Bill.MicroUSD, "atoll.model_calls": r.Bill.Calls,
		"gen_ai.usage.input_tokens": r.Bill.Input, "gen_ai.usage.output_tokens": r.Bill.Output, "atoll.step": string(r.Step),
	})
}
