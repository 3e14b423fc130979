package execute

import (
	"context"

	"github.com/atoll-run/atoll/internal/filelock"
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
func (f relayFinisher) finishAtGateway(ctx context.Context, receipt *run.Receipt) (string, error) {
	c, err := f.runs.executor.commits.GatewayWork(receipt)
	if err != nil || c == nil {
		return "", err
	}
	held, err := f.runs.reclaimBranch(ctx, c)
	if err != nil {
		return "", err
	}
	defer held.Release()
	record, note, err := f.runs.executor.commits.TakeHeld(ctx, c, deliver.AboutRun(receipt), receipt.Error != nil)
	if err == nil {
		receipt.Delivery = deliver.DeliveryOf(&c.Work, record, note)
	}
	return note, err
}

// reclaimBranch is the branch that a run has waited for, or, after a crash, the
// branch anew.
func (r *Runs) reclaimBranch(ctx context.Context, c *deliver.ContainerWork) (*filelock.Lock, error) {
	if held := r.takeBranch(c.Run); held != nil {
		return held, nil
	}
	return r.executor.commits.HoldBranch(ctx, deliver.BranchClaim{Key: c.Work.Key, Run: c.Run})
}
