package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/agent/envelope"
	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/store"
)

// course is one run on its way, by the process that holds its lock.
type course struct {
	*Runner
	variant *Variant
	job     *Job
	argv    []string
	files   []File
	watch   func(Event)
	receipt *Receipt
	place   Place
	told    teller
	hearing sync.Mutex // its two outputs come at once
}

// whole does a run from the beginning.
func (c *course) whole(ctx context.Context) error {
	leave, err := c.pass(ctx)
	if err != nil {
		return c.end(ctx, "", c.excuse(ctx, err, "gate_failed"))
	}
	defer leave()
	if err := c.queue.enter(ctx, c.job.Account); err != nil {
		return c.end(ctx, "", fail("cancelled", "the run was cancelled before it began"))
	}
	defer c.queue.leave()
	c.receipt.Started = time.Now().UTC()
	if err := c.reach(ctx, Preparing); err != nil {
		return err
	}
	text, failure := c.work(ctx)
	return c.end(ctx, text, failure)
}

// pass goes through the gate.
func (c *course) pass(ctx context.Context) (leave func(), err error) {
	if c.Gate == nil {
		return func() {}, nil
	}
	return c.Gate(ctx, &c.job.Request, func(text string) { c.tell(ctx, Event{Type: "waiting", Text: text}) })
}

// work provides a place and lets the agent work in it.
func (c *course) work(ctx context.Context) (string, *Failure) {
	if c.variant.Elsewhere != nil {
		return c.visit(ctx)
	}
	place, err := c.Places.Make(ctx, &Order{
		Run: c.job.ID, Branch: c.job.Branch, Checkout: c.job.Checkout, Account: c.job.Account, Agent: c.job.Agent,
		Image: c.variant.Image, User: c.variant.User, Memory: c.job.Memory, MemoryAsked: c.job.MemoryAsked, Mounts: c.variant.Mounts, Binds: c.variant.Binds, Volumes: c.variant.Volumes,
	})
	if err != nil {
		return "", c.excuse(ctx, err, "sandbox_failed")
	}
	c.place, c.receipt.Sandbox, c.receipt.Image = place, place.Name(), place.Image()
	if err := place.Write(ctx, c.files); err != nil {
		return "", c.excuse(ctx, err, "workspace_failed")
	}
	end, err := place.Grant(ctx, c.terms())
	if err != nil {
		return "", c.excuse(ctx, err, "grant_failed")
	}
	text, failure := c.execute(ctx, place)
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanup)
	defer cancel()
	if err := end(after); err != nil {
		c.receipt.Warnings = append(c.receipt.Warnings, "closing the grant: "+err.Error())
	}
	return text, failure
}

func (c *course) execute(ctx context.Context, place Place) (string, *Failure) {
	if err := c.reach(ctx, Executing); err != nil {
		return "", c.excuse(ctx, err, "store_failed")
	}
	result, err := place.Exec(ctx, &Command{
		Argv: c.argv, Env: c.variant.Env(c.job), Dir: c.job.Work,
		Timeout: c.job.Timeout, MaxOutput: envelope.MaxOutput, Line: c.listen(ctx), Out: c.overhear(ctx),
	})
	if err != nil {
		return "", c.excuse(ctx, err, "sandbox_lost")
	}
	end := judge(c.variant, result)
	c.receipt.Told, c.receipt.PeakMemory = end.told, result.Memory
	return end.text, end.failure
}

func (c *course) terms() *grant.Terms {
	models := []string{c.job.Model}
	if c.variant.Remembers && c.job.Embeddings != "" {
		models = append(models, c.job.Embeddings)
	}
	return &grant.Terms{
		Account: c.job.Account, Agent: c.job.Agent, Session: cmp.Or(c.job.Session, SessionOf(c.job.Agent, c.job.ID)), Run: c.job.ID, Attempt: "0",
		Graph: c.variant.ID, Trace: c.job.Trace, Models: models,
		Budget: c.job.Budget, Until: time.Now().Add(c.job.Timeout + cleanup),
	}
}

// SessionOf is the session of a run that belongs to none.
func SessionOf(agent, id string) string { return "agent:" + agent + ":run:" + id }

// excuse names the reason of a failure: a caller that went away before all
// others.
func (c *course) excuse(ctx context.Context, err error, code string) *Failure {
	switch {
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return fail("timeout", "the run was not done in time")
	case ctx.Err() != nil:
		return fail("cancelled", "the run was cancelled")
	}
	return failureOf(err, code)
}

// rest ends a run that another process began: what it has not answered, it has
// failed at.
func (c *course) rest(ctx context.Context) error {
	place, err := c.Places.Find(ctx, c.job.ID)
	if err != nil {
		return fmt.Errorf("its sandbox: %w", err)
	}
	c.place = place
	switch c.receipt.Step {
	case Accepted, Preparing, Executing:
		c.abandon(ctx)
		return c.end(ctx, "", fail("interrupted", "Atoll ended while the run was %s", c.receipt.Step))
	}
	return c.conclude(ctx)
}

// end records the answer and does what follows it, also when the caller is gone.
func (c *course) end(ctx context.Context, text string, failure *Failure) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanup)
	defer cancel()
	c.receipt.Text, c.receipt.Error = text, failure
	if err := c.reach(ctx, Answered); err != nil {
		return err
	}
	if text != "" && !c.told.text {
		c.tell(ctx, Event{Type: "text_delta", Text: text})
	}
	if failure != nil {
		c.tell(ctx, Event{Type: "error", Error: failure})
	}
	return c.conclude(ctx)
}

// conclude does the steps after the answer that are not done yet. Each can be
// repeated.
func (c *course) conclude(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanup)
	defer cancel()
	for _, s := range []struct {
		from, to Step
		do       func(context.Context) error
	}{{Answered, Settled, c.settle}, {Settled, Finished, c.finish}, {Finished, Over, c.leave}} {
		if c.receipt.Step != s.from {
			continue
		}
		if err := s.do(ctx); err != nil {
			return err
		}
		if err := c.reach(ctx, s.to); err != nil {
			return err
		}
	}
	c.tell(ctx, Event{Type: "done", Bill: &c.receipt.Bill, Notes: c.receipt.Notes})
	return nil
}

func (c *course) settle(ctx context.Context) error {
	bill, err := c.Books.Settle(ctx, c.job.ID)
	if err != nil {
		return fmt.Errorf("settling the bill: %w", err)
	}
	c.receipt.Bill = bill
	c.tell(ctx, Event{Type: "usage_report", Bill: &bill})
	return nil
}

// finish calls every finisher. One that fails keeps the place: what was made
// there is not lost, and the next start tries again.
func (c *course) finish(ctx context.Context) error {
	for _, f := range c.Finishers {
		note, err := f.Finish(ctx, c.receipt, c.place)
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

func (c *course) leave(ctx context.Context) error {
	if c.place == nil {
		return nil
	}
	if err := c.place.Remove(ctx); err != nil {
		return fmt.Errorf("removing the sandbox: %w", err)
	}
	return nil
}

// reach writes a step down.
func (c *course) reach(ctx context.Context, s Step) error {
	c.Checkpoint(s)
	c.receipt.Step = s
	if s == Over {
		c.receipt.Ended = time.Now().UTC()
	}
	// A full disk is waited for: what was done must not look as if it was not.
	if err := store.Retry(ctx, func() error { return c.Store.save(ctx, c.receipt) }, func(error) {}); err != nil {
		return err
	}
	c.Checkpoint(s)
	c.tell(ctx, Event{Type: "step", Step: s})
	return nil
}

// tell writes an event down and passes it on. An event that cannot be stored is
// passed on all the same: the receipt is what counts.
func (c *course) tell(ctx context.Context, e Event) {
	e.At = time.Now().UTC()
	if err := c.Store.note(ctx, c.job.ID, &e); err != nil {
		c.receipt.Warnings = append(c.receipt.Warnings, "event: "+err.Error())
	}
	if c.watch != nil {
		c.watch(e)
	}
}
