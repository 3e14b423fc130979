package session

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/gateway/publicerr"
	"github.com/atoll-run/atoll/internal/store"
)

var (
	errAborted     = errors.New("the task was aborted")
	errInterrupted = &Failure{CodeInterrupted, errors.New("the gateway ended while the task was under way")}
)

// execute runs a task from its turn to its end.
func (s *Service) execute(l *taskQueue, t *task) {
	defer s.release(l, t)
	job, err := s.begin(t.ctx, t)
	if err != nil && s.ctx.Err() != nil { // left to the next process
		close(t.done)
		return
	}
	ctx, cancel := context.WithTimeoutCause(t.ctx, t.record.Timeout, &Failure{CodeTimeout, fmt.Errorf("not done after %v", t.record.Timeout)})
	defer cancel()
	var out *Outcome
	if err == nil {
		out, err = s.runWorker(ctx, job, t)
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if save := s.finish(context.WithoutCancel(ctx), t, out, err); save != nil {
		save() // before the next task of the session, to keep the order
	}
}

// begin stores that a task is under way before it has an effect, and collects its
// session's settings.
func (s *Service) begin(ctx context.Context, t *task) (*Job, error) {
	rec := t.snapshot()
	rec.State, rec.Started = Running, now()
	var e *Entry
	err := s.retried(ctx, rec, func(tx *sql.Tx) (err error) {
		if e, err = s.touch(ctx, tx, rec); err != nil {
			return err
		}
		if e.Headers, err = checkHeaders(merged(e.Headers, rec.Headers)); err != nil {
			return err
		}
		rec.Session = e.ID
		if err := s.rows.saveEntry(ctx, tx, e); err != nil {
			return err
		}
		return s.rows.save(ctx, tx, rec)
	})
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	t.record.State, t.record.Started, t.record.Session = rec.State, rec.Started, rec.Session
	t.level = e.Levels[VerboseLevel]
	t.mu.Unlock()
	s.publish(t, Event{Kind: Started})
	s.Logger.InfoContext(ctx, "task begun", "task", rec.ID, "session", rec.Key, "account", rec.Account, "agent", rec.Agent, "trace", rec.Trace, "waited", rec.Started.Sub(rec.Accepted))
	return &Job{Sources: s.sources(&rec.Task), Task: rec.Task, Agent: rec.Agent, Session: e.ID, Model: e.Model, Headers: maps.Clone(e.Headers), Levels: merged(e.Levels, thinking(rec.Terms.Thinking))}, nil
}

func thinking(level string) map[string]string {
	if level == "" {
		return nil
	}
	return map[string]string{ThinkingLevel: level}
}

// merged returns base with the entries of over.
func merged(base, over map[string]string) map[string]string {
	if len(over) == 0 {
		return maps.Clone(base)
	}
	all := maps.Clone(base)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, over)
	return all
}

// runWorker calls the worker. A panic fails the task only.
func (s *Service) runWorker(ctx context.Context, job *Job, t *task) (out *Outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.Logger.ErrorContext(ctx, "a worker panicked", "task", job.ID, "session", job.Key, "panic", p, "stack", string(debug.Stack()))
			err = &Failure{CodeInternal, errors.New("something went wrong inside the gateway")}
		}
	}()
	return s.Worker.Work(ctx, job, func(e Event) {
		if slices.Contains([]EventKind{Prepared, Said, Called, Returned, Used, Noticed}, e.Kind) {
			s.publish(t, e)
		}
	})
}

// publish publishes an event of a task, in order, until the task is over.
func (s *Service) publish(t *task, e Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return
	}
	t.over = e.Kind == Ended
	t.seq++
	e.Seq, e.At = t.seq, time.Now().UTC()
	e.Task, e.Key, e.Account, e.Agent, e.Origin = t.record.ID, t.record.Key, t.record.Account, t.record.Agent, t.record.Origin
	e.Verbose = t.level
	e.detach()
	if e.Account != "" && e.Kind == Noticed {
		e.Notice = publicerr.Text(e.Notice)
	}
	if e.Kind == Said {
		t.said.WriteString(e.Delta)
		e.Text = t.said.String()
	} else {
		t.said.Reset() // later text is another message
	}
	s.hub.publish(e)
}

// detach copies what an event points to. Events outlive the task, and a pointer
// into the worker's memory would keep all of it.
func (e *Event) detach() {
	if e.Usage != nil {
		used := *e.Usage
		e.Usage = &used
	}
	if e.Call != nil {
		call := *e.Call
		e.Call = &call
	}
	if e.Location != nil {
		place := *e.Location
		e.Location = &place
	}
}

// finish stores the outcome of a task, and publishes it. If the database fails,
// save retries until it succeeds or the service is closed.
func (s *Service) finish(ctx context.Context, t *task, out *Outcome, failure error) (save func()) {
	if out == nil {
		out = &Outcome{}
	}
	t.mu.Lock()
	r := &t.record
	r.Text, r.Model, r.Usage, r.MicroUSD, r.Ended = out.Text, out.Model, out.Usage, out.MicroUSD, now()
	r.State, r.Code, r.Problem = stateOf(failure)
	r.Hint, r.Report = errhint.Of(failure), out.Report
	problem := r.Problem
	r.hidePaths()
	rec := *r
	t.mu.Unlock()
	err := s.tx(ctx, func(tx *sql.Tx) error { return s.saveEnd(ctx, tx, &rec) })
	switch {
	case store.IsTransient(err):
		save = func() {
			s.logUnsaved(ctx, &rec, s.retried(s.ctx, &rec, func(tx *sql.Tx) error { return s.saveEnd(ctx, tx, &rec) }))
		}
	case err != nil:
		s.logUnsaved(ctx, &rec, err)
	default:
		s.forgetOld(ctx)
	}
	s.dropFiles(&rec.Task)
	if s.OnEnd != nil {
		s.OnEnd(&rec)
	}
	s.log(ctx, &rec, problem)
	s.publish(t, Event{Kind: Ended, Text: rec.Text, Model: rec.Model, Usage: &rec.Usage, IsError: rec.State != Done, Notice: rec.Problem, Record: &rec})
	close(t.done)
	return save
}

// logUnsaved logs that the end of a task was not stored.
func (s *Service) logUnsaved(ctx context.Context, rec *Record, err error) {
	if err != nil {
		s.Logger.ErrorContext(ctx, "the end of a task could not be written down; the next start will call it interrupted", "task", rec.ID, "session", rec.Key, "error", err)
	}
}

// retried runs f in a write transaction, and retries while the disk is full or
// fails, until the context ends.
func (s *Service) retried(ctx context.Context, rec *Record, f func(*sql.Tx) error) error {
	first := true
	err := store.Retry(ctx, func() error { return s.tx(ctx, f) }, func(err error) {
		if first {
			first = false
			s.countUnsaved(1)
			s.Logger.WarnContext(ctx, "the state of a task cannot be written now; it is tried again", "task", rec.ID, "session", rec.Key, "error", err)
		}
	})
	if !first {
		s.countUnsaved(-1)
	}
	return err
}

func (s *Service) countUnsaved(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unsaved += n
}

// hidePaths removes paths of the host from a record.
func (r *Record) hidePaths() {
	if r.Account == "" {
		return
	}
	r.Problem, r.Hint = publicerr.Text(r.Problem), publicerr.Text(r.Hint)
	if r.Report != nil && r.Report.Delivery != nil {
		report, delivery := *r.Report, *r.Report.Delivery
		delivery.Note, delivery.Error, delivery.Hint = publicerr.Text(delivery.Note), publicerr.Text(delivery.Error), publicerr.Text(delivery.Hint)
		report.Delivery = &delivery
		r.Report = &report
	}
}

// log logs a task that is over, as the span of a trace. The problem is logged where
// the record does not have all of it.
func (s *Service) log(ctx context.Context, rec *Record, problem string) {
	attrs := []slog.Attr{
		slog.String("task", rec.ID), slog.String("session", rec.Key), slog.String("account", rec.Account), slog.String("state", string(rec.State)),
		slog.String("model", rec.Model), slog.Time("accepted", rec.Accepted), slog.Time("began", rec.Started), slog.Duration("took", duration(rec)),
	}
	if rec.Trace != "" {
		attrs = append(attrs, slog.String("trace", rec.Trace))
	}
	if rec.Code != "" {
		attrs = append(attrs, slog.String("code", rec.Code))
	}
	if problem != rec.Problem { // the record has less than the log
		attrs = append(attrs, slog.String("problem", problem))
	}
	s.Logger.LogAttrs(ctx, slog.LevelInfo, "task over", attrs...)
}

// duration returns how long a task was executed.
func duration(rec *Record) time.Duration {
	if rec.Started.IsZero() {
		return 0
	}
	return rec.Ended.Sub(rec.Started)
}

// stateOf returns the final state, code and problem for a worker's error.
func stateOf(failure error) (state State, code, problem string) {
	var coded *Failure
	switch {
	case failure == nil:
		return Done, "", ""
	case errors.Is(failure, errAborted):
		return Aborted, "aborted", failure.Error()
	case errors.As(failure, &coded):
		return Failed, coded.Code, problemOf(failure)
	}
	return Failed, CodeFailed, problemOf(failure)
}

// problemOf returns the text of an error, with its hint.
func problemOf(failure error) string {
	if hint := errhint.Of(failure); hint != "" {
		return failure.Error() + " (" + hint + ")"
	}
	return failure.Error()
}

// saveEnd stores a task that is over, and its usage in its session.
func (s *Service) saveEnd(ctx context.Context, tx *sql.Tx, rec *Record) error {
	if err := s.rows.save(ctx, tx, rec); err != nil {
		return err
	}
	e, err := s.rows.entry(ctx, tx, sessionRef{rec.Account, rec.Key})
	if errors.Is(err, ErrNotFound) { // the session was deleted while the task waited
		return nil
	}
	if err != nil {
		return err
	}
	if !rec.Started.IsZero() {
		e.Last, e.Total, e.Aborted = rec.Usage, e.Total.Plus(rec.Usage), rec.State == Aborted
	}
	if rec.Model != "" {
		e.LastModel = rec.Model
	}
	e.Updated = now()
	return s.rows.saveEntry(ctx, tx, e)
}

// forgetEvery is the number of tasks after which old ones are removed.
const forgetEvery = 1000

func (s *Service) forgetOld(ctx context.Context) {
	s.mu.Lock()
	s.ended++
	due := s.ended%forgetEvery == 0
	s.mu.Unlock()
	if !due {
		return
	}
	if err := s.rows.forgetTasks(ctx, time.Now().Add(-s.Limits.Keep)); err != nil {
		s.Logger.WarnContext(ctx, "old tasks stay", "error", err)
	}
}
