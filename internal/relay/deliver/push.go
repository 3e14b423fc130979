package deliver

import (
	"context"
	"time"

	"github.com/atoll-run/atoll/internal/metrics"
	"github.com/atoll-run/atoll/internal/relay"
	"github.com/atoll-run/atoll/internal/tracing"
)

// pushMeters count deliveries of commits.
type pushMeters struct {
	over    *metrics.Counters
	seconds *metrics.Histograms
}

func newPushMeters(r *metrics.Registry) pushMeters {
	return pushMeters{
		over:    r.Counter("atoll_relay_pushes_total", "Attempts to push commits that are over, by outcome: the step they came to (done, pushed, blocked, waiting, nothing), or failed.", "outcome"),
		seconds: r.Histogram("atoll_relay_push_seconds", "Time of an attempt to judge and push commits, by outcome.", metrics.Minutes(), "outcome"),
	}
}

// push judges and sends commits, and logs and counts the attempt.
func (d *Deliverer) push(ctx context.Context, relays *Relays, project *relay.Project, record *relay.Record) error {
	begun, branch := time.Now(), record.Work.Key.Branch()
	d.Logger.InfoContext(ctx, "push begun", "run", record.Run, "branch", branch, "account", record.Account, "agent", record.Agent, "step", record.Step)
	err := relays.Send(ctx, project, record)
	outcome, took := string(record.Step), time.Since(begun)
	if err != nil {
		outcome = "failed"
	}
	d.pushes.over.With(outcome).Inc()
	d.pushes.seconds.With(outcome).Observe(took.Seconds())
	d.Tracer.Record(&tracing.Done{Name: "push", Run: record.Run, Begun: begun, Took: took, Error: tracing.Code(err, outcome), Attributes: tracing.Attributes{
		"vcs.ref.head.name": branch, "atoll.outcome": outcome, "atoll.commits": commits(record),
	}})
	if err != nil {
		d.Logger.WarnContext(ctx, "push over", "run", record.Run, "branch", branch, "account", record.Account, "agent", record.Agent, "outcome", outcome, "step", record.Step, "took", took, "error", err)
		return err
	}
	d.Logger.InfoContext(ctx, "push over", "run", record.Run, "branch", branch, "account", record.Account, "agent", record.Agent, "outcome", outcome, "pullRequest", record.PullURL, "took", took)
	return nil
}

// commits returns how many commits there are to push, as far as that is known.
func commits(r *relay.Record) int {
	if r.Report == nil {
		return 0
	}
	return len(r.Report.Commits)
}
