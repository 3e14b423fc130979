package deliver

import (
	"context"
	"errors"

	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/relay"
)

// Resume goes on with what processes left that ended: commits of agents on
// the host that were not taken, and records that were not sent. Branches that are
// locked are left alone. What cannot be done now is tried by the
// next process, and is the error.
func (d *Deliverer) Resume(ctx context.Context) ([]*relay.Record, error) {
	relays, err := OpenRelays(d.Settings)
	if err != nil {
		return nil, err
	}
	found, problems := d.resumeAgents(ctx)
	records, err := relays.List()
	problems = append(problems, err)
	for _, r := range records {
		if !r.Open() {
			continue
		}
		err := d.resumeRelay(ctx, r)
		if err == nil {
			found = append(found, r)
		} else if !errors.Is(err, filelock.ErrHeld) {
			problems = append(problems, err)
		}
	}
	return found, errors.Join(problems...)
}

func (d *Deliverer) resumeRelay(ctx context.Context, r *relay.Record) error {
	held, err := d.tryBranch(ctx, BranchClaim{Key: r.Work.Key, Run: r.Run})
	if err != nil {
		return err
	}
	defer held.Release()
	return d.sendHeld(ctx, r)
}

// resumeAgents takes the commits of agents whose processes are gone. What was
// taken and not sent is an open record then.
func (d *Deliverer) resumeAgents(ctx context.Context) (found []*relay.Record, problems []error) {
	for _, w := range d.agentWorks(ctx) {
		held, err := d.tryBranch(ctx, BranchClaim{Key: w.Work.Key, Run: w.Run})
		if errors.Is(err, filelock.ErrHeld) {
			continue // its process lives, or another one resumes it
		}
		var record *relay.Record
		if err == nil {
			record, _, err = d.takeAgent(ctx, w)
			held.Release()
		}
		if err != nil {
			problems = append(problems, d.notTaken(w, err))
		} else if record != nil && !record.Open() {
			found = append(found, record)
		}
	}
	return found, problems
}
