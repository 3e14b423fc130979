package serve

import (
	"context"
	"log/slog"
	"time"

	"github.com/atoll-run/atoll/internal/run"
)

// How often runs are looked for whose last steps failed, such as the removal of a sandbox on
// a node that did not answer. After a failure the pause doubles.
const (
	unfinishedInterval = time.Minute
	unfinishedLongest  = 30 * time.Minute
)

// watchUnfinished looks for runs with steps left until the gateway ends.
func (g *Gateway) watchUnfinished(ctx context.Context) {
	u := &unfinishedRuns{end: g.runs.Recover, logger: g.logger}
	g.inBackground(ctx, u.watch)
}

// unfinishedRuns brings runs to their end that are under way nowhere.
type unfinishedRuns struct {
	end    func(context.Context) ([]run.Receipt, error)
	logger *slog.Logger
}

// watch looks for such runs until the context ends.
func (u *unfinishedRuns) watch(ctx context.Context) {
	for pause := unfinishedInterval; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		receipts, err := u.end(ctx)
		u.log(ctx, receipts)
		if err == nil {
			pause = unfinishedInterval
		} else if ctx.Err() == nil {
			pause = min(2*pause, unfinishedLongest)
			u.logger.WarnContext(ctx, "the last steps of runs failed; they are tried again", "error", err, "in", pause)
		}
	}
}

func (u *unfinishedRuns) log(ctx context.Context, receipts []run.Receipt) {
	for i := range receipts {
		if receipts[i].Step == run.Over {
			u.logger.InfoContext(ctx, "the last steps of a run were done", "run", receipts[i].ID)
		}
	}
}
