package app

import (
	"context"
	"errors"
	"io/fs"

	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/relay"
	"github.com/atoll-run/atoll/internal/relay/branch"
	"github.com/atoll-run/atoll/internal/run"
)

// gatewayContainer is the container of a gateway, in whose volume runs commit.
type gatewayContainer struct {
	app  *App
	name string
}

// Prepare puts the branch of a run into the container. The run has waited for the
// branch and holds it.
func (g gatewayContainer) Prepare(ctx context.Context, j *run.Job) (string, error) {
	c := &ContainerWork{Run: j.ID, Account: j.Account, Container: g.name, Root: ContainerWorkspace}
	if err := g.app.prepareContainer(ctx, c, branch.Key(j.Branch)); err != nil {
		return "", err
	}
	return c.Work.Dir, nil
}

var _ run.Branches = gatewayContainer{}

// finishAtGateway takes what a run at a gateway committed, if it was to. The
// volume stays as it is: the next work on the branch resets it.
func (f relayFinisher) finishAtGateway(ctx context.Context, receipt *run.Receipt) (string, error) {
	c, err := f.runs.app.gatewayWork(receipt)
	if err != nil || c == nil {
		return "", err
	}
	held, err := f.runs.reclaimBranch(ctx, c)
	if err != nil {
		return "", err
	}
	defer held.Release()
	record, note, err := f.runs.app.takeContainer(ctx, c, aboutRun(receipt), receipt.Error != nil)
	if err == nil {
		receipt.Delivery = deliveryOf(&c.Work, record, note)
	}
	return note, err
}

// gatewayWork is what was prepared for a run at a gateway, or taken already by a
// process that did not get to the end; nil if nothing was.
func (a *App) gatewayWork(receipt *run.Receipt) (*ContainerWork, error) {
	notes := containerNotes(a.Settings)
	c, err := notes.load(notes.file(receipt.ID))
	if !errors.Is(err, fs.ErrNotExist) {
		return c, err
	}
	relays, err := OpenRelays(a.Settings)
	if err != nil {
		return nil, err
	}
	record, err := relays.Load(receipt.ID)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &ContainerWork{Run: record.Run, Account: record.Account, Work: record.Work}, nil
}

// reclaimBranch is the branch that a run has waited for, or, after a crash, the
// branch anew.
func (r *Runs) reclaimBranch(ctx context.Context, c *ContainerWork) (*filelock.Lease, error) {
	if held := r.takeBranch(c.Run); held != nil {
		return held, nil
	}
	return r.app.holdBranch(ctx, branchClaim{key: c.Work.Key, run: c.Run})
}

func aboutRun(receipt *run.Receipt) relay.About {
	return relay.About{Model: receipt.Model, Variant: receipt.Variant, Cost: dollars(receipt.Bill.MicroUSD)}
}
