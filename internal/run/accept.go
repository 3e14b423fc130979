package run

import (
	"context"
	"errors"
	"time"

	"github.com/atoll-run/atoll/internal/filelock"
)

// AcceptedRun is a run that is stored and can be reported as accepted; Run carries
// it out.
type AcceptedRun struct {
	// Fresh means that the id was not used before.
	Fresh bool

	execution *execution
	lock      *filelock.Lock // nil if another process or goroutine carries the run out
}

// Accept checks a request and stores it. The run's lock is held from then on, so
// Run or Release must follow.
func (r *Runner) Accept(ctx context.Context, request *Request) (*AcceptedRun, error) {
	c, err := r.plan(request)
	if err != nil {
		return nil, err
	}
	lock, err := r.Locks.TryHold(lockName(request.ID))
	if err != nil && !errors.Is(err, filelock.ErrHeld) {
		return nil, err
	}
	fresh, err := r.Store.accept(ctx, request, time.Now())
	if err != nil {
		lock.Release()
		return nil, err
	}
	return &AcceptedRun{Fresh: fresh, execution: c, lock: lock}, nil
}

// plan checks whether a request can be carried out, before anything is made.
func (r *Runner) plan(request *Request) (*execution, error) {
	if err := request.check(); err != nil {
		return nil, err
	}
	variant, err := Find(r.Variants, request.Variant)
	if err != nil {
		return nil, err
	}
	if request.Memory > variant.Memory && variant.Memory > 0 {
		return nil, fail("memory_too_large", "%s may use at most %d MiB of memory, and %d are asked for", variant.ID, variant.Memory>>20, request.Memory>>20)
	}
	job := variant.job(request)
	argv, files, err := variant.prepare(job)
	if err != nil {
		return nil, err // nothing has begun
	}
	return &execution{Runner: r, variant: variant, job: job, argv: argv, files: files}, nil
}

// Run carries the run out, or waits for the process that does.
func (b *AcceptedRun) Run(ctx context.Context, watch func(Event)) (*Receipt, error) {
	if b.lock == nil {
		lock, err := b.execution.Locks.Hold(ctx, lockName(b.execution.job.ID))
		if err != nil {
			return nil, err
		}
		b.lock = lock
	}
	defer b.lock.Release()
	b.execution.watch = watch
	return b.execution.carryOut(ctx, b.execution)
}

// Release gives the run's lock back without carrying it out.
func (b *AcceptedRun) Release() { b.lock.Release() }
