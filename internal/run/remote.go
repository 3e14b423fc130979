package run

import (
	"context"
	"errors"

	"github.com/atoll-run/atoll/internal/agent/envelope"
	"github.com/atoll-run/atoll/internal/model/grant"
)

// Executor carries out runs at a service that many runs share, without a sandbox
// of their own.
type Executor interface {
	// Check says why a job cannot be done there, before anything has begun.
	Check(j *Job) error
	// Execute gives a job to the service and waits for the answer, or ends it
	// when ctx does. The terms are whose it is and what it may ask for. It calls
	// tell from one goroutine.
	Execute(ctx context.Context, j *Job, terms *grant.Terms, tell func(Event)) (*envelope.Envelope, error)
	// Abandon ends what a process that is gone had begun for a run.
	Abandon(ctx context.Context, j *Job) error
}

// NoSlot is the code of a run that waited for its turn until its time was up.
const NoSlot = "no_slot"

// prepare makes the arguments and files of a job; at a remote service there are
// none.
func (v *Variant) prepare(j *Job) (argv []string, files []File, err error) {
	if v.Remote != nil {
		return nil, nil, v.Remote.Check(j)
	}
	if argv, err = v.Argv(j); err != nil {
		return nil, nil, err // too long to be an argument, for instance
	}
	files, err = v.Files(j)
	return argv, files, err
}

// runRemote carries the job out at the service.
func (c *execution) runRemote(ctx context.Context) (string, *Failure) {
	if err := c.setStep(ctx, Executing); err != nil {
		return "", c.failureFor(ctx, err, "store_failed")
	}
	limited, cancel := context.WithTimeout(ctx, c.job.Timeout)
	defer cancel()
	e, err := c.variant.Remote.Execute(limited, c.job, c.terms(), c.remoteEvents(ctx))
	own, _ := errors.AsType[*Failure](err)
	switch {
	case own != nil && own.Code == NoSlot:
		return "", own
	case err != nil && limited.Err() != nil && ctx.Err() == nil:
		return "", fail("timeout", "the agent was not done in time and was ended")
	case err != nil:
		return "", c.failureFor(ctx, err, "gateway_failed")
	}
	end := outcomeFromEnvelope(e)
	c.receipt.SelfReport = end.selfReport
	return end.text, end.failure
}

// remoteEvents returns the function that takes the service's events, within the
// same bounds as a program's.
func (c *execution) remoteEvents(ctx context.Context) func(Event) {
	ctx = context.WithoutCancel(ctx)
	var seen progress
	return func(e Event) {
		size := len(e.Text)
		if e.Call != nil {
			size += len(e.Call.Args) + len(e.Call.Name) + len(e.Call.ID)
		}
		if seen.admit(&e, size) {
			c.spoken = seen.text
			c.emit(ctx, e)
		}
	}
}

// abandonRemote ends at the service what a dead process had begun.
func (c *execution) abandonRemote(ctx context.Context) {
	v, err := Find(c.Variants, c.receipt.Variant)
	if err != nil || v.Remote == nil {
		return
	}
	if err := v.Remote.Abandon(ctx, c.job); err != nil && !errors.Is(err, context.Canceled) {
		c.receipt.Warnings = append(c.receipt.Warnings, "ending what was left: "+err.Error())
	}
}
