package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/agent/envelope"
	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/store"
	"github.com/atoll-run/atoll/internal/tailbuf"
)

// execution is one run in the process that holds its lock.
type execution struct {
	*Runner
	variant *Variant
	job     *Job
	argv    []string
	files   []File
	watch   func(Event)
	receipt *Receipt
	sandbox Sandbox
	spoken  bool           // a part of the answer was an event
	branch  *filelock.Lock // of a run's branch, until a sandbox is given it
}

// runAll carries a run out from its first step.
func (c *execution) runAll(ctx context.Context) error {
	c.emit(ctx, Event{Type: "step", Step: Accepted})
	if err := c.lockBranch(ctx); err != nil {
		return c.end(ctx, "", c.failureFor(ctx, err, "branch_lock_failed"))
	}
	defer func() { c.branch.Release() }()
	if err := c.queue.acquire(ctx, c.job.Account); err != nil {
		return c.end(ctx, "", fail("cancelled", "the run was cancelled before it began"))
	}
	defer c.queue.release()
	c.receipt.Started, c.receipt.Waiting = time.Now().UTC(), ""
	if err := c.setStep(ctx, Preparing); err != nil {
		return err
	}
	text, failure := c.work(ctx)
	return c.end(ctx, text, failure)
}

// lockBranch waits for the lock of the run's branch, if it has one.
func (c *execution) lockBranch(ctx context.Context) (err error) {
	if c.LockBranch == nil || c.job.Branch == "" {
		return nil
	}
	c.branch, err = c.LockBranch(ctx, &c.job.Request, func(text string) { c.wait(ctx, text) })
	return err
}

// wait notes what the run waits for. If it cannot be saved, the event says it.
func (c *execution) wait(ctx context.Context, text string) {
	c.receipt.Waiting = text
	_ = c.Store.save(ctx, c.receipt)
	c.emit(ctx, Event{Type: "waiting", Text: text})
}

// takeBranch returns the lock of the branch, which the caller releases.
func (c *execution) takeBranch() *filelock.Lock {
	lock := c.branch
	c.branch = nil
	return lock
}

// maxDenied is how many denials of egress a receipt has.
const maxDenied = 16

// work makes a sandbox and runs the agent in it.
func (c *execution) work(ctx context.Context) (string, *Failure) {
	if c.variant.Remote != nil {
		return c.runRemote(ctx)
	}
	sandbox, err := c.Sandboxes.Make(ctx, &SandboxRequest{
		Run: c.job.ID, Branch: c.job.Branch, Checkout: c.job.Checkout, Directory: c.job.Directory, Account: c.job.Account, Agent: c.job.Agent,
		Image: c.variant.Image, User: c.variant.User, Memory: c.job.Memory, MemoryAsked: c.job.MemoryAsked, Mounts: c.variant.Mounts, Binds: c.variant.Binds, Volumes: c.variant.Volumes,
		BranchLock: c.takeBranch(),
	})
	if err != nil {
		return "", c.failureFor(ctx, err, "sandbox_failed")
	}
	c.sandbox, c.receipt.Sandbox, c.receipt.Image = sandbox, sandbox.Name(), sandbox.Image()
	if err := sandbox.Write(ctx, c.files); err != nil {
		return "", c.failureFor(ctx, err, "workspace_failed")
	}
	end, err := sandbox.Grant(ctx, c.terms())
	if err != nil {
		return "", c.failureFor(ctx, err, "grant_failed")
	}
	text, failure := c.execute(ctx, sandbox)
	if d, ok := sandbox.(Denier); ok {
		denied := d.Denied()
		c.receipt.Warnings = append(c.receipt.Warnings, denied[:min(len(denied), maxDenied)]...)
	}
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	if err := end(after); err != nil {
		c.receipt.Warnings = append(c.receipt.Warnings, "closing the grant: "+err.Error())
	}
	return text, failure
}

func (c *execution) execute(ctx context.Context, sandbox Sandbox) (string, *Failure) {
	if err := c.setStep(ctx, Executing); err != nil {
		return "", c.failureFor(ctx, err, "store_failed")
	}
	out := output{stdout: tailbuf.Writer{Most: envelope.MaxOutput}, stderr: tailbuf.Writer{Most: keptStderr}}
	events := newEventReader(c.variant, func(e Event) { c.emit(context.WithoutCancel(ctx), e) }, &out.stderr)
	result, err := sandbox.Exec(ctx, &machine.Command{
		Argv: c.argv, Env: envList(c.variant.Env(c.job)), Dir: c.job.Work, Timeout: c.job.Timeout,
		Stdout: io.MultiWriter(&out.stdout, events.Stdout()), Stderr: events.Stderr(), EndTree: true,
	})
	events.Flush()
	c.spoken = events.progress.text
	if err != nil {
		return "", c.failureFor(ctx, err, lossOf(err))
	}
	end := outcomeOf(c.variant, result, &out)
	if end.selfReport.Usage == (envelope.Usage{}) {
		end.selfReport.Usage = usageOf(events.progress.usage)
	}
	c.receipt.SelfReport, c.receipt.PeakMemory = end.selfReport, result.MaxRSS
	return end.text, end.failure
}

// envList returns variables as "NAME=value", in order.
func envList(env map[string]string) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}

func (c *execution) terms() *grant.Terms {
	models := []string{c.job.Model}
	if c.variant.UsesEmbeddings && c.job.Embeddings != "" {
		models = append(models, c.job.Embeddings)
	}
	return &grant.Terms{
		Account: c.job.Account, Agent: c.job.Agent, Session: cmp.Or(c.job.Session, SessionOf(c.job.Agent, c.job.ID)), Run: c.job.ID, Attempt: "0",
		Graph: c.variant.ID, Trace: c.job.Trace, Models: models,
		Budget: c.job.Budget, Until: time.Now().Add(c.job.Timeout + cleanupTimeout),
	}
}

// SessionOf is the session of a run that belongs to none.
func SessionOf(agent, id string) string { return "agent:" + agent + ":run:" + id }

// failureFor maps an error to a failure; a timeout or a cancelled caller comes
// before the error itself.
func (c *execution) failureFor(ctx context.Context, err error, code string) *Failure {
	switch {
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return fail("timeout", "the run was not done in time")
	case ctx.Err() != nil:
		return fail("cancelled", "the run was cancelled")
	case errors.Is(err, machine.ErrNodeLost):
		code = "interrupted"
	}
	return failureOf(err, code)
}

// lossOf returns the code of a run whose program's result cannot be had. One that was cut off
// has not failed by itself.
func lossOf(err error) string {
	if errors.Is(err, machine.ErrTransport) {
		return "interrupted"
	}
	return "sandbox_lost"
}

// resume ends a run that another process began. Without an answer it has failed.
func (c *execution) resume(ctx context.Context) error {
	sandbox, err := c.Sandboxes.Find(ctx, c.job.ID)
	if err != nil {
		return fmt.Errorf("its sandbox: %w", err)
	}
	c.sandbox = sandbox
	switch c.receipt.Step {
	case Accepted, Preparing, Executing:
		c.abandonRemote(ctx)
		return c.end(ctx, "", fail("interrupted", "Atoll ended while the run was %s", c.receipt.Step))
	}
	return c.runFinalSteps(ctx)
}

// end saves the answer and does the final steps, also when the caller is gone.
func (c *execution) end(ctx context.Context, text string, failure *Failure) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	c.receipt.Text, c.receipt.Error = text, failure
	if err := c.setStep(ctx, Answered); err != nil {
		return err
	}
	if text != "" && !c.spoken {
		c.emit(ctx, Event{Type: "text_delta", Text: text})
	}
	if failure != nil {
		c.emit(ctx, Event{Type: "error", Error: failure})
	}
	return c.runFinalSteps(ctx)
}

// runFinalSteps does the steps after the answer that are not done yet. Each can be
// repeated.
func (c *execution) runFinalSteps(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	for _, s := range []struct {
		from, to Step
		do       func(context.Context) error
	}{{Answered, Settled, c.settle}, {Settled, Finished, c.finish}, {Finished, Over, c.removeSandbox}} {
		if c.receipt.Step != s.from {
			continue
		}
		if err := s.do(ctx); err != nil {
			return err
		}
		if err := c.setStep(ctx, s.to); err != nil {
			return err
		}
	}
	c.emit(ctx, Event{Type: "done", Bill: &c.receipt.Bill, Notes: c.receipt.Notes})
	return nil
}

func (c *execution) settle(ctx context.Context) error {
	bill, err := c.Biller.Settle(ctx, c.job.ID)
	if err != nil {
		return fmt.Errorf("settling the bill: %w", err)
	}
	c.receipt.Bill = bill
	c.emit(ctx, Event{Type: "usage_report", Bill: &bill})
	return nil
}

// finish calls every finisher. If one fails the sandbox is kept: what was made
// there is not lost, and the next start tries again.
func (c *execution) finish(ctx context.Context) error {
	for _, f := range c.Finishers {
		note, err := f.Finish(ctx, &Ended{Receipt: c.receipt, Sandbox: c.sandbox, BranchLock: c.branch})
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name(), err)
		}
		if note != "" {
			if c.receipt.Notes == nil {
				c.receipt.Notes = map[string]string{}
			}
			c.receipt.Notes[f.Name()] = note
		}
	}
	return nil
}

func (c *execution) removeSandbox(ctx context.Context) error {
	if c.sandbox == nil {
		return nil
	}
	if err := c.sandbox.Remove(ctx); err != nil {
		return fmt.Errorf("removing the sandbox: %w", err)
	}
	return nil
}

// setStep saves a step.
func (c *execution) setStep(ctx context.Context, s Step) error {
	c.Checkpoint(s)
	c.receipt.Step = s
	if s == Over {
		c.receipt.Ended = time.Now().UTC()
	}
	// Wait while the disk is full: a step that was done must be saved.
	if err := store.Retry(ctx, func() error { return c.Store.save(ctx, c.receipt) }, func(error) {}); err != nil {
		return err
	}
	c.Checkpoint(s)
	c.emit(ctx, Event{Type: "step", Step: s})
	return nil
}

// emit stores an event and passes it to the watcher, even if it cannot be stored:
// the receipt is what counts.
func (c *execution) emit(ctx context.Context, e Event) {
	e.At = time.Now().UTC()
	if err := c.Store.addEvent(ctx, c.job.ID, &e); err != nil {
		c.receipt.Warnings = append(c.receipt.Warnings, "event: "+err.Error())
	}
	if c.watch != nil {
		c.watch(e)
	}
}
