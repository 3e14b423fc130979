package execute

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/relay"
	"github.com/atoll-run/atoll/internal/relay/branch"
	"github.com/atoll-run/atoll/internal/relay/deliver"
	"github.com/atoll-run/atoll/internal/run"
)

// workFile says which branch was prepared for a run, and from where.
const workFile = "work.json"

// prepareWork puts the repository into the sandbox of a run that is to commit.
// It holds the branch until the sandbox of the run is removed.
func (p *Sandbox) prepareWork(ctx context.Context) error {
	if p.order.Branch == "" {
		return nil
	}
	relays, project, err := p.runs.executor.commits.ProjectOf(deliver.WorkOf{Account: p.order.Account, Agent: p.order.Agent, Checkout: p.order.Checkout})
	if err != nil {
		return err
	}
	if err := p.holdBranch(ctx); err != nil {
		return err
	}
	site, err := p.site(ctx, deliver.StepBefore)
	if err != nil {
		return err
	}
	if p.work, err = relays.Prepare(ctx, project, site, branch.Key(p.order.Branch)); err != nil {
		return &run.Failure{Code: "relay_failed", Message: err.Error()}
	}
	text, err := json.Marshal(p.work)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(p.runs.executor.dir(p.order.Run), workFile), text, 0o600)
}

// lockBranch waits for the lock of the branch of a run.
func (r *Runs) lockBranch(ctx context.Context, request *run.Request, tell func(string)) (*filelock.Lock, error) {
	return r.executor.commits.HoldBranch(ctx, deliver.BranchClaim{Key: branch.Key(request.Branch), Run: request.ID, Tell: tell})
}

// holdBranch has the branch for this run alone: by the lock that it was given, or,
// after a crash, by a new one.
func (p *Sandbox) holdBranch(ctx context.Context) (err error) {
	if p.branch == nil {
		p.branch, err = p.runs.executor.commits.HoldBranch(ctx, deliver.BranchClaim{Key: branch.Key(p.order.Branch), Run: p.order.Run})
	}
	return err
}

func (p *Sandbox) releaseBranch() {
	if p.branch != nil {
		p.branch.Release()
		p.branch = nil
	}
}

func (p *Sandbox) site(ctx context.Context, step time.Duration) (relay.Site, error) {
	s, err := p.Ready(ctx)
	if err != nil {
		return relay.Site{}, err
	}
	return deliver.SiteFor(s, step), nil
}

// loadWork returns what was prepared, by this process or by an earlier one; nil
// if nothing was.
func (p *Sandbox) loadWork() (*relay.Work, error) {
	if p.work != nil {
		return p.work, nil
	}
	text, err := os.ReadFile(filepath.Join(p.runs.executor.dir(p.order.Run), workFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	p.work = new(relay.Work)
	return p.work, json.Unmarshal(text, p.work)
}

// relayFinisher takes the commits of a run out, and sends them if the run did not
// fail.
type relayFinisher struct{ runs *Runs }

// Name is how receipts call it.
func (relayFinisher) Name() string { return deliver.NoteName }

// Finish has the sandbox deliver. For a run at a gateway, which has none, it takes
// the commits out of the gateway's container.
func (f relayFinisher) Finish(ctx context.Context, e *run.Ended) (string, error) {
	if e.Sandbox == nil {
		return f.finishAtGateway(ctx, e)
	}
	return e.Sandbox.Deliver(ctx, e.Receipt)
}

// Deliver takes the commits of the run out, and sends them if the run did not fail.
// An error keeps the sandbox, so that nothing is lost. Keeping the sandbox after
// the commits were taken is harmless.
func (p *Sandbox) Deliver(ctx context.Context, receipt *run.Receipt) (string, error) {
	if p.order.Directory != "" {
		p.noteChanges(ctx, receipt)
		return "", nil
	}
	work, err := p.loadWork()
	if err != nil || work == nil {
		return "", err
	}
	if err := p.holdBranch(ctx); err != nil {
		return "", err
	}
	defer p.releaseBranch() // also of what failed: the next try takes it again
	record, note, err := p.runs.executor.commits.Deliver(ctx, &deliver.Delivery{
		Site: func(ctx context.Context) (relay.Site, error) { return p.site(ctx, deliver.StepAfter) },
		Order: relay.TakeRequest{
			Run: receipt.ID, Account: p.order.Account, Agent: p.order.Agent, Work: *work, Held: receipt.Error != nil,
			About: deliver.AboutRun(receipt),
		},
	})
	if err != nil {
		return note, err
	}
	if reason := unsaved(record, note); reason != "" {
		if note, err = p.keepWork(reason); err != nil {
			return "", err
		}
	}
	receipt.Delivery = deliver.DeliveryOf(work, record, note)
	return note, nil
}

// unsaved is why the files of a run must be kept; "" if all of its work was taken.
func unsaved(record *relay.Record, note string) string {
	switch {
	case record == nil:
		return note
	case record.Unsaved != "":
		return note + "; not taken: " + record.Unsaved
	}
	return ""
}
