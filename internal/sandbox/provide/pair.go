package provide

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
)

// ensureHalves makes both sandboxes at once. If either fails, neither is kept
// in use.
func (a *Installation) ensureHalves(ctx context.Context, p *plan.Plan) (*ReadySandbox, error) {
	var isolated, net *sandbox.Handle
	group, both := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		isolated, err = a.Manager.Ensure(both, p.Spec)
		return err
	})
	if p.Net != nil {
		group.Go(func() (err error) {
			net, err = a.Manager.Ensure(both, p.Net)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		release(isolated, net)
		return nil, err
	}
	if net != nil {
		isolated.Notices = append(isolated.Notices, net.Notices...)
	}
	return &ReadySandbox{Handle: isolated, Plan: p, Net: net, in: a}, nil
}

func release(handles ...*sandbox.Handle) {
	for _, h := range handles {
		if h != nil {
			h.Release()
		}
	}
}
