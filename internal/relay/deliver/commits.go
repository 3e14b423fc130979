package deliver

import (
	"context"
	"errors"

	"github.com/atoll-run/atoll/internal/relay"
)

// DeliverCommits judges commits of an overlay workspace and sends them as those of
// a run. The record is nil if they were refused, and the note says why.
func (d *Deliverer) DeliverCommits(ctx context.Context, c relay.Commits, order *relay.TakeRequest) (*relay.Record, string, error) {
	held, err := d.HoldBranch(ctx, BranchClaim{Key: order.Work.Key, Run: order.Run})
	if err != nil {
		return nil, "", err
	}
	defer held.Release()
	relays, project, err := d.ProjectOf(WorkOf{order.Account, order.Agent, order.Work.Checkout})
	if err != nil {
		return nil, "", err
	}
	record, err := relays.TakeCommits(ctx, project, c, order)
	if errors.Is(err, relay.ErrRefused) {
		return nil, "refused: " + err.Error(), nil
	}
	if err != nil {
		return nil, "", err
	}
	err = relays.Send(ctx, project, record)
	return record, Note(record), err
}
