package execute

import (
	"context"

	"github.com/atoll-run/atoll/internal/relay/branch"
	"github.com/atoll-run/atoll/internal/relay/deliver"
	"github.com/atoll-run/atoll/internal/run"
)

// gatewayContainer is the container of a gateway, in whose volume runs commit.
type gatewayContainer struct {
	executor *Executor
	name     string
}

// Prepare puts the branch of a run into the container. The run has waited for the
// branch and holds it.
func (g gatewayContainer) Prepare(ctx context.Context, j *run.Job) (string, error) {
	c := &deliver.ContainerWork{Run: j.ID, Account: j.Account, Container: g.name, Root: deliver.ContainerWorkspace}
	if err := g.executor.commits.PrepareHeld(ctx, c, branch.Key(j.Branch)); err != nil {
		return "", err
	}
	return c.Work.Dir, nil
}

var _ run.Branches = gatewayContainer{}

// finishAtGateway takes what a run at a gateway committed, if it was to. The
// volume stays as it is: the next work on the branch resets it.
func (f relayFinisher) finishAtGateway(ctx context.Context, e *run.Ended) (string, error) {
	commits, receipt := f.runs.executor.commits, e.Receipt
	c, err := commits.GatewayWork(receipt)
	if err != nil || c == nil {
		return "", err
	}
	lock := e.BranchLock
	if lock == nil { // after a crash
		if lock, err = commits.HoldBranch(ctx, deliver.BranchClaim{Key: c.Work.Key, Run: c.Run}); err != nil {
			return "", err
		}
		defer lock.Release()
	}
	record, note, err := commits.TakeHeld(ctx, c, deliver.AboutRun(receipt), receipt.Error != nil)
	if err == nil {
		receipt.Delivery = deliver.DeliveryOf(&c.Work, record, note)
	}
	return note, err
}
