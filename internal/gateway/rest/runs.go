package rest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"net/http"
	"strings"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/live"
	"github.com/atoll-run/atoll/internal/gateway/session"
	"github.com/atoll-run/atoll/internal/logid"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/store"
)

// Runs executes tasks.
type Runs interface {
	// Begin accepts a task. Its receipt is stored when it returns.
	Begin(ctx context.Context, t *Task) (*run.AcceptedRun, error)
	// Resume finishes a run whose steps could not be stored.
	Resume(ctx context.Context, id string) error
	// Limit bounds what a run may use of its account's quota; forget is called when it
	// is over.
	Limit(id string, q session.Quota) (forget func())
	// Bill updates what a run has cost.
	Bill(ctx context.Context, id string) (run.Bill, error)
}

// defaultGraph is the agent of a run that names none.
const defaultGraph = "sandbox:agent"

// startRun starts a run: it answers 202 at once, with an event stream, or with the
// finished run, as the request prefers.
func (s *Server) startRun(c *call, _ *none, body *api.RunRequest) error {
	task, err := c.task(body)
	if err != nil {
		return err
	}
	work, err := s.begin(c, task)
	if err != nil {
		return err
	}
	c.w.Header().Set("Location", "/api/v1/ai/runs/"+task.ID)
	switch {
	case prefersAsync(c.r):
		c.w.Header().Set("Preference-Applied", "respond-async")
		return c.answerRun(http.StatusAccepted, task.ID)
	case wantsEvents(c.r, true):
		return c.streamEvents(task.ID, 0)
	}
	select {
	case <-work.done:
		return c.answerRun(http.StatusOK, task.ID)
	case <-c.ctx().Done():
		return context.Cause(c.ctx()) // the run goes on
	}
}

// begin accepts a task within the caller's quota and starts it.
func (s *Server) begin(c *call, task *Task) (*activeRun, error) {
	closed, err := s.active.admitRun()
	if err != nil {
		return nil, err
	}
	end := closed
	_, err = s.Store.Get(c.ctx(), task.ID)
	if s.Limits != nil && errors.Is(err, run.ErrNotFound) { // a repeated request takes no quota
		release, err := s.reserve(c)
		if err != nil {
			closed()
			return nil, err
		}
		forget := s.Runs.Limit(task.ID, c.quota())
		end = func() { forget(); release(); closed() }
	}
	begun, err := s.Runs.Begin(c.ctx(), task)
	if err != nil {
		end()
		return nil, keyProblem(err, c.r)
	}
	s.Changed(live.TopicRuns)
	return s.active.start(task.ID, func(ctx context.Context, ring func(run.Event)) {
		ctx = logid.With(logid.Copy(ctx, c.ctx()), "run", task.ID)
		s.logBegin(ctx, task, begun.Fresh)
		s.execute(ctx, task, begun, func(e run.Event) { ring(e); s.tellLists(&e) })
	}, begun.Release, func() { end(); s.Changed(live.TopicRuns) }), nil
}

// tellLists tells lists of runs of an event that they show.
func (s *Server) tellLists(e *run.Event) {
	if e.Type != "text_delta" && e.Type != "log" {
		s.Changed(live.TopicRuns)
	}
}

// execute runs a task until its end is in the store, where readers look for it,
// also if it failed.
func (s *Server) execute(ctx context.Context, task *Task, begun *run.AcceptedRun, ring func(run.Event)) {
	span := s.beginSpan(task)
	receipt, err := begun.Run(ctx, func(e run.Event) { s.traceTool(task.ID, &e); ring(e) })
	if store.IsTransient(err) {
		s.Logger.WarnContext(ctx, "the end of a run cannot be written now; it is tried again", "run", task.ID, "error", err)
		err = store.Retry(s.active.ctx, func() error { return s.Runs.Resume(s.active.ctx, task.ID) }, func(error) {})
	}
	endSpan(span, receipt, err)
	if err != nil {
		s.Logger.ErrorContext(ctx, "the end of a run could not be written down", "run", task.ID, "error", err)
		return
	}
	if receipt != nil {
		s.logEnd(ctx, receipt)
	}
}

// reserve counts a run and its sandbox against the caller's quota.
func (s *Server) reserve(c *call) (release func(), err error) {
	if err := s.Limits.CheckSandboxes(c.ctx(), c.caller); err != nil {
		return nil, err
	}
	return s.Limits.Begin(c.ctx(), c.caller)
}

// quota returns the quota of a task of the caller.
func (c *call) quota() session.Quota {
	if c.Limits == nil {
		return session.Quota{}
	}
	q := c.Limits.Quota(c.caller)
	return session.Quota{Sandboxes: q.Sandboxes, MicroUSD: q.MicroUSD}
}

// keyProblem distinguishes a reused idempotency key from a reused run id.
func keyProblem(err error, r *http.Request) error {
	if errors.Is(err, run.ErrIDReused) && r.Header.Get(IdempotencyKey) != "" {
		return &api.Problem{Status: http.StatusUnprocessableEntity, Code: "idempotency_key_used", Detail: "the Idempotency-Key was used for another task", Hint: "a new task needs a new key"}
	}
	return err
}

func (c *call) answerRun(status int, id string) error {
	r, err := c.Store.Get(c.ctx(), id)
	if err != nil {
		return err
	}
	answer := c.runOf(r)
	return c.answer(status, &answer)
}

// prefersAsync reads the Prefer header (RFC 7240).
func prefersAsync(r *http.Request) bool {
	for _, line := range r.Header.Values("Prefer") {
		for part := range strings.SplitSeq(line, ",") {
			name, _, _ := strings.Cut(part, ";")
			if strings.EqualFold(strings.TrimSpace(name), "respond-async") {
				return true
			}
		}
	}
	return false
}

// wantsEvents reads the Accept header; otherwise is the result without one.
func wantsEvents(r *http.Request, otherwise bool) bool {
	accept := strings.ToLower(strings.Join(r.Header.Values("Accept"), ","))
	switch {
	case strings.Contains(accept, "text/event-stream"):
		return true
	case strings.Contains(accept, "application/json"):
		return false
	}
	return otherwise
}

// IdempotencyKey is the header under which repeated requests start one run.
const IdempotencyKey = "Idempotency-Key"

// idempotentRunID returns the run id of an idempotency key. It includes the
// account, so that keys of other accounts cannot be guessed.
func idempotentRunID(account, key string) string {
	sum := sha256.Sum256([]byte(account + "\x00" + key))
	return "run-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}

// run returns a run that the caller may see, or run.ErrNotFound.
func (c *call) run() (*run.Receipt, error) {
	r, err := c.Store.GetFor(c.ctx(), c.path("id"), c.caller.Sees)
	if errors.Is(err, run.ErrNotFound) {
		return nil, &api.Problem{Status: http.StatusNotFound, Code: "run_not_found", Detail: "there is no such run"}
	}
	return r, err
}

// checkCursor refuses a cursor that is not a run the caller may see.
func (c *call) checkCursor(id string) error {
	if id == "" {
		return nil
	}
	r, err := c.Store.Get(c.ctx(), id)
	if err == nil && c.caller.Sees(r.Account) {
		return nil
	}
	if err != nil && !errors.Is(err, run.ErrNotFound) {
		return err
	}
	return invalid(api.FieldError{Pointer: "cursor", Detail: "is not one of a page before"})
}

// account returns the account that a request is for: the caller's own if it is
// bound to one.
func (c *call) account(asked string) (string, error) {
	if asked != "" && !c.caller.Sees(asked) {
		return "", refused("other_account", "the token is bound to another account", "leave account out")
	}
	return cmp.Or(c.caller.Account, asked), nil
}

func (s *Server) getRun(c *call, _, _ *none) (*api.Run, error) {
	r, err := c.run()
	if err != nil {
		return nil, err
	}
	answer := c.runOf(r)
	return &answer, nil
}

// cancelRun cancels a run that this process executes.
func (s *Server) cancelRun(c *call, _, _ *none) (*api.Run, error) {
	r, err := c.run()
	if err != nil {
		return nil, err
	}
	if r.Step != run.Over {
		work := s.active.find(r.ID)
		if work == nil {
			return nil, &api.Problem{Status: http.StatusConflict, Code: "run_elsewhere", Detail: "the run is under way in another process", Hint: "end it there"}
		}
		work.cancel(errCancelled)
		select {
		case <-work.done:
		case <-c.ctx().Done():
			return nil, context.Cause(c.ctx())
		}
	}
	return s.getRun(c, nil, nil)
}

func (s *Server) runCost(c *call, _, _ *none) (*api.RunCost, error) {
	r, err := c.run()
	if err != nil {
		return nil, err
	}
	bill := r.Bill
	if bill.Provisional || r.Step != run.Over {
		if bill, err = s.Runs.Bill(c.ctx(), r.ID); err != nil {
			return nil, err
		}
	}
	return &api.RunCost{ID: r.ID, Bill: api.Bill(bill)}, nil
}
