package overlays

import (
	"context"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gate/take"
	"github.com/atoll-run/atoll/internal/relay"
	"github.com/atoll-run/atoll/internal/relay/deliver"
)

// Deliver gives the agent's commits to the relay, which judges them and sends them
// to the branch of the order, as those of a run. The note says what became of them.
func (s *Service) Deliver(ctx context.Context, by *deliver.Deliverer, of *api.SyncSubject, order relay.TakeRequest) (note string, err error) {
	_, err = onCommits(ctx, s, of, func(found *subject, w *take.Workspace) (*relay.Record, error) {
		offer, err := w.Commits(ctx, "")
		if err != nil {
			return nil, err
		}
		if len(offer.Commits) == 0 && offer.Verdict == "" {
			return nil, take.ErrNothing
		}
		order.Account, order.Agent = found.account, found.plan.Agent.ID
		order.Work.Dir, order.Work.Checkout = w.Dir, w.Checkout.Top
		var record *relay.Record
		record, note, err = by.DeliverCommits(ctx, offer.Handover(), &order)
		return record, err
	})
	return note, err
}
