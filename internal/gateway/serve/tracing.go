package serve

import (
	"context"
	"strconv"
	"time"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/gateway/session"
	"github.com/atoll-run/atoll/internal/tracing"
)

// tracePatience bounds one request to a collector, and what is sent at the end.
const tracePatience = 10 * time.Second

// openTracing sends traces to the collector that is configured, if one is.
func (g *Gateway) openTracing(ctx context.Context) error {
	endpoint := tracing.EndpointOf(g.parts.Getenv, g.config.Traces)
	if endpoint == "" {
		return nil
	}
	host, err := g.parts.Outbound()
	if err != nil {
		return err
	}
	failed := g.parts.Models.Metrics().Counter("atoll_traces_failed_total", "Batches of spans that could not be sent to the collector.").With()
	client := host.Client(tracePatience)
	if g.tracer, err = tracing.Open(ctx, tracing.Options{Endpoint: endpoint, Client: client, Logger: g.logger, Failed: failed.Inc}); err != nil {
		return err
	}
	g.parts.Models.OnCall, g.parts.Commits.Tracer = g.traceCall, g.tracer
	g.onClose(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closePatience)
		defer cancel()
		g.logError("traces", g.tracer.Close(ctx))
		client.CloseIdleConnections()
	})
	return nil
}

// traceCall makes the span of a call of a model, in the words that OpenTelemetry has
// for them, without what was said.
func (g *Gateway) traceCall(r *audit.ModelRequest) {
	failed := ""
	switch {
	case r.Denied != "":
		failed = "denied"
	case r.Status >= 400:
		failed = strconv.Itoa(r.Status)
	}
	g.tracer.Record(&tracing.Done{
		Name: "chat " + r.ModelAsked, Run: r.Subject.Run, Trace: r.Subject.Trace, Begun: r.Time, Took: r.Total, Error: failed, Client: true,
		Attributes: tracing.Attributes{
			"gen_ai.operation.name": "chat", "gen_ai.request.model": r.ModelAsked, "gen_ai.response.model": r.ModelAnswered, "gen_ai.response.id": r.RequestID,
			"gen_ai.usage.input_tokens": r.Tokens.Input + r.Tokens.CachedInput + r.Tokens.CacheWrite, "gen_ai.usage.output_tokens": r.Tokens.Output,
			"http.response.status_code": r.Status, "atoll.cost_microusd": r.CostMicroUSD, "session.id": r.Subject.Session, "user.id": r.Subject.Account,
			"langfuse.observation.type": "generation",
		},
	})
}

// beginTask begins the span of a session's task.
func (g *Worker) beginTask(job *session.Job, run string) *tracing.Span {
	return g.tracer.Begin(&tracing.Work{Name: "task " + job.Agent, Run: run, Trace: job.Trace, Attributes: tracing.Attributes{
		"atoll.run": run, "atoll.task": job.ID, "atoll.agent": job.Agent, "session.id": job.Key, "user.id": payer(job.Account, job.Headers),
		"langfuse.trace.name": "task " + job.Agent, "langfuse.trace.metadata.run_id": run,
	}})
}

// traceTool makes the span of a tool call that has returned.
func (g *Worker) traceTool(run string, e *session.Event) {
	if e.Kind == session.Returned && e.Call != nil {
		g.tracer.Tool(run, e.Call.Name, e.TookMs, e.IsError)
	}
}
