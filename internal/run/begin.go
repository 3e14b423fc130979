package run

import (
	"context"
	"errors"
	"time"

	"github.com/atoll-run/atoll/internal/filelock"
)

// Begun is a run that was accepted: whoever asked for it can be told so, and
// goes on with Run.
type Begun struct {
	// Fresh means that nobody had asked for it before.
	Fresh bool

	course *course
	lock   *filelock.Lease // nil if somebody else carries the run out
}

// Begin checks a request and writes it down. From then on nobody takes the run
// for one of a dead process; so Run, or Forsake, must follow.
func (r *Runner) Begin(ctx context.Context, request *Request) (*Begun, error) {
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
	return &Begun{Fresh: fresh, course: c, lock: lock}, nil
}

// plan finds out whether a request can be carried out, before anything is made.
func (r *Runner) plan(request *Request) (*course, error) {
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
	argv, files, err := variant.order(job)
	if err != nil {
		return nil, err // nothing has begun
	}
	return &course{Runner: r, variant: variant, job: job, argv: argv, files: files}, nil
}

// Run carries the run out, or waits for whoever does.
func (b *Begun) Run(ctx context.Context, watch func(Event)) (*Receipt, error) {
	if b.lock == nil {
		lock, err := b.course.Locks.Hold(ctx, lockName(b.course.job.ID))
		if err != nil {
			return nil, err
		}
		b.lock = lock
	}
	defer b.lock.Release()
	b.course.watch = watch
	return b.course.carryOut(ctx, b.course)
}

// Forsake leaves the run to whoever carries it out.
func (b *Begun) Forsake() { b.lock.Release() }
