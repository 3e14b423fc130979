package app

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
)

// ProvidePair is Provide for callers that route calls between the halves of a
// network pair: where there is one, both are ready when it returns. A session
// without a pair has one sandbox, as with Provide.
func (a *App) ProvidePair(ctx context.Context, who Subject) (*Session, error) {
	p, _, err := a.decide(ctx, who)
	if err != nil {
		return nil, err
	}
	held, err := a.holdCopy(ctx, p.Layout.WorkspaceDir)
	if err != nil {
		return nil, err
	}
	defer held()
	notices, err := a.prepareHost(ctx, p)
	if err != nil {
		return nil, err
	}
	made, err := a.holdRoom(ctx, who, p)
	if err != nil {
		return nil, err
	}
	defer made()
	s, err := a.ensureHalves(ctx, p)
	if err != nil {
		return nil, err
	}
	s.Notices = append(notices, s.Notices...)
	return s, nil
}

// ensureHalves makes both sandboxes at once. If either fails, neither is kept
// in use.
func (a *App) ensureHalves(ctx context.Context, p *plan.Plan) (*Session, error) {
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
	return &Session{Handle: isolated, Plan: p, Net: net}, nil
}

func release(handles ...*sandbox.Handle) {
	for _, h := range handles {
		if h != nil {
			h.Release()
		}
	}
}
