package app

import (
	"context"
	"errors"

	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/relay"
)

// ResumeRelays goes on with what processes left that ended: commits of agents on
// the host that nobody took, and whatever was taken and not sent. Branches on
// which somebody works are left alone. What cannot be done now is tried by the
// next process, and is the error.
func (a *App) ResumeRelays(ctx context.Context) ([]*relay.Record, error) {
	relays, err := OpenRelays(a.Settings)
	if err != nil {
		return nil, err
	}
	found, problems := a.resumeAgents(ctx)
	records, err := relays.List()
	problems = append(problems, err)
	for _, r := range records {
		if !r.Open() {
			continue
		}
		err := a.resumeRelay(ctx, r)
		if err == nil {
			found = append(found, r)
		} else if !errors.Is(err, filelock.ErrHeld) {
			problems = append(problems, err)
		}
	}
	return found, errors.Join(problems...)
}

func (a *App) resumeRelay(ctx context.Context, r *relay.Record) error {
	held, err := a.tryBranch(ctx, branchClaim{key: r.Work.Key, run: r.Run})
	if err != nil {
		return err
	}
	defer held.Release()
	return a.sendHeld(ctx, r)
}

// resumeAgents takes the commits of agents whose processes are gone. What was
// taken and not sent is an open record then.
func (a *App) resumeAgents(ctx context.Context) (found []*relay.Record, problems []error) {
	for _, w := range a.agentWorks(ctx) {
		held, err := a.tryBranch(ctx, branchClaim{key: w.Work.Key, run: w.Run})
		if errors.Is(err, filelock.ErrHeld) {
			continue // it is alive, or somebody else takes care of it
		}
		var record *relay.Record
		if err == nil {
			record, _, err = a.takeAgent(ctx, w)
			held.Release()
		}
		if err != nil {
			problems = append(problems, a.notTaken(w, err))
		} else if record != nil && !record.Open() {
			found = append(found, record)
		}
	}
	return found, problems
}
