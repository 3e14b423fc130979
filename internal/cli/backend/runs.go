package backend

import (
	"context"
	"fmt"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/relay/deliver"
	"github.com/atoll-run/atoll/internal/run/execute"
)

// openRunStore opens the runs, and ends those that dead processes left.
func openRunStore(ctx context.Context, e *console.Env, a *app.App) (*execute.Runs, error) {
	runs, err := a.Runs.Open(execute.Options{})
	if err != nil {
		return nil, err
	}
	for _, r := range runs.RecoverRuns(ctx) {
		e.Notice(fmt.Sprintf("run %s was left by a process that ended; it is over now", r.ID))
	}
	ResumeRelays(ctx, e, a)
	return runs, nil
}

// ResumeRelays resumes relays that dead processes left. A failure is only printed.
func ResumeRelays(ctx context.Context, e *console.Env, a *app.App) {
	found, err := a.Commits.Resume(ctx)
	for _, r := range found {
		e.Notice(fmt.Sprintf("the commits of %s were left by a process that ended: %s", r.Run, deliver.Note(r)))
	}
	if err != nil {
		e.Notice("commits that a process left: " + err.Error())
	}
}
