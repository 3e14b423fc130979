package rest

import (
	"context"

	"github.com/atoll-run/atoll/internal/metrics"
	"github.com/atoll-run/atoll/internal/run"
)

// runMeters count runs.
type runMeters struct {
	over    *metrics.Counters
	seconds *metrics.Histograms
	waited  *metrics.Histogram
}

func newRunMeters(r *metrics.Registry, active *activeRuns) runMeters {
	r.Gauge("atoll_runs_running", "Runs under way in this process.", func() float64 { return float64(active.running()) })
	r.Gauges("atoll_runs_active", "Runs under way in this process, by the last step that they came to.", []string{"step"}, func(set func(float64, ...string)) {
		for step, n := range active.steps() {
			set(float64(n), string(step))
		}
	})
	return runMeters{
		over:    r.Counter("atoll_runs_total", "Runs that are over, by state (done or failed) and code of the failure; other is a code that the agent chose.", "state", "code"),
		seconds: r.Histogram("atoll_run_duration_seconds", "Time of a run from its start to its end, by state.", metrics.Minutes(), "state"),
		waited:  r.Histogram("atoll_run_wait_seconds", "Time from the acceptance of a run to its start.", metrics.Minutes()).With(),
	}
}

// logBegin logs a run that was accepted.
func (s *Server) logBegin(ctx context.Context, t *Task, fresh bool) {
	s.Logger.InfoContext(ctx, "run begun", "run", t.ID, "variant", t.GraphID, "account", t.Account, "branch", t.Branch, "trace", t.Trace, "again", !fresh)
}

// logEnd logs and counts a run that is over.
func (s *Server) logEnd(ctx context.Context, r *run.Receipt) {
	state, code := "done", ""
	if r.Error != nil {
		state, code = "failed", r.Error.Code
	}
	s.meters.over.With(state, run.MetricCode(r.Error)).Inc()
	if !r.Started.IsZero() {
		s.meters.seconds.With(state).Observe(r.Ended.Sub(r.Started).Seconds())
		s.meters.waited.Observe(r.Started.Sub(r.Created).Seconds())
	}
	s.Logger.InfoContext(ctx, "run over", "run", r.ID, "variant", r.Variant, "account", r.Account, "state", state, "model", r.Model, "sandbox", r.Sandbox,
		"took", r.Ended.Sub(r.Created), "microUsd", r.Bill.MicroUSD, "code", code)
}
