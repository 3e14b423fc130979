package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/filelock"
)

// Options are what a Runner is made of.
type Options struct {
	Store     Store
	Locks     *filelock.Locks // shared by all processes of the installation
	Variants  []Variant
	Sandboxes Sandboxes
	Biller    Biller
	Finishers []Finisher
	AtOnce    int // runs of this process at the same time; default 4
	// LockBranch waits for the lock of a run's branch, before the run waits for its
	// turn: that keeps no other run from working, and is no part of the run's time.
	LockBranch func(ctx context.Context, r *Request, tell func(text string)) (*filelock.Lock, error)
	// Checkpoint, if set, is called at every step, before it is written down and
	// after. Tests end the process there.
	Checkpoint func(Step)
}

// cleanupTimeout bounds what is done after a run was cancelled: its end must not wait
// for a sandbox that does not answer.
const cleanupTimeout = 2 * time.Minute

// Runner carries out runs. It is safe for concurrent use.
type Runner struct {
	Options
	queue *queue
}

// New returns a runner.
func New(o Options) *Runner {
	if o.Checkpoint == nil {
		o.Checkpoint = func(Step) {}
	}
	return &Runner{Options: o, queue: newQueue(cmp.Or(o.AtOnce, 4))}
}

// Waiting returns how many runs wait because as many as allowed are under way.
func (r *Runner) Waiting() int { return r.queue.waits() }

// Run carries out a request, or waits for the process that does. The receipt of
// a run that was begun is returned even if its agent failed: Error says so there.
// An error means that the run was not begun, or could not be recorded.
func (r *Runner) Run(ctx context.Context, request *Request, watch func(Event)) (*Receipt, error) {
	begun, err := r.Accept(ctx, request)
	if err != nil {
		return nil, err
	}
	return begun.Run(ctx, watch)
}

// carryOut does what is left of a run whose lock is held.
func (r *Runner) carryOut(ctx context.Context, c *execution) (receipt *Receipt, err error) {
	if c.receipt, err = r.Store.Get(ctx, c.job.ID); err != nil {
		return nil, err
	}
	switch c.receipt.Step {
	case Over:
		return c.receipt, nil
	case Accepted:
		return c.receipt, c.runAll(ctx)
	}
	return c.receipt, c.resume(ctx) // the process that began it is gone
}

func lockName(id string) string { return "run " + id }

// Recover brings every run to an end that a dead process left. Runs that are
// under way elsewhere are left alone.
func (r *Runner) Recover(ctx context.Context) (ended []Receipt, err error) {
	ids, err := r.Store.unfinished(ctx)
	if err != nil {
		return nil, err
	}
	var problems []error
	for _, id := range ids {
		receipt, err := r.recoverOne(ctx, id)
		if err != nil {
			problems = append(problems, fmt.Errorf("run %s: %w", id, err))
		}
		if receipt != nil {
			ended = append(ended, *receipt)
		}
	}
	return ended, errors.Join(problems...)
}

// Resume brings one run to its end that could not be recorded. It does nothing to a
// run that is under way, or over.
func (r *Runner) Resume(ctx context.Context, id string) error {
	_, err := r.recoverOne(ctx, id)
	return err
}

func (r *Runner) recoverOne(ctx context.Context, id string) (*Receipt, error) {
	lock, err := r.Locks.TryHold(lockName(id))
	if errors.Is(err, filelock.ErrHeld) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer lock.Release()
	request, receipt, err := r.Store.load(ctx, id)
	if err != nil || receipt.Step == Over {
		return nil, err
	}
	c := &execution{Runner: r, job: &Job{Request: *request}, receipt: receipt}
	return receipt, c.resume(ctx)
}
