package session

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/audit/traceparent"
	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/policy"
)

// maxTaskID bounds an idempotency key, in bytes.
const maxTaskID = 256

// Submit accepts a task. It is stored when this returns, and is executed once, also
// if the process restarts. The same task under the same id returns the accepted
// one; a different task is ErrKeyReused.
func (s *Service) Submit(ctx context.Context, v View, t Task) (rec *Record, existing bool, err error) {
	return s.SubmitAfter(ctx, v, t, func(*Record) {})
}

// SubmitAfter is Submit for callers that have to do something before a new task
// starts: it starts when say returns.
func (s *Service) SubmitAfter(ctx context.Context, v View, t Task, say func(*Record)) (rec *Record, existing bool, err error) {
	key, p, err := s.find(v, t.Key, t.Account)
	if err != nil {
		return nil, false, err
	}
	t.Key, t.Account = p.key, p.account
	if err := s.check(&t); err != nil {
		return nil, false, err
	}
	if rec, err := s.duplicate(ctx, &t); rec != nil || err != nil {
		return rec, rec != nil, err
	}
	l, err := s.admit(p, t.bytes())
	if err != nil {
		return nil, false, err
	}
	if err := s.keepFiles(&t); err != nil {
		s.unreserve(l, t.bytes())
		return nil, false, err
	}
	rec = &Record{Task: t, Agent: key.Agent, State: Queued, Accepted: now()}
	fresh, err := s.accept(ctx, rec)
	if err != nil || !fresh {
		s.unreserve(l, t.bytes())
		if err != nil {
			s.dropFiles(&t)
			return nil, false, err
		}
		rec, err = s.duplicate(ctx, &t)
		return rec, rec != nil, err
	}
	say(rec)
	s.hub.publish(Event{Task: t.ID, Key: t.Key, Account: t.Account, Agent: rec.Agent, Origin: t.Origin, At: rec.Accepted, Kind: Accepted})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enqueue(l, newTask(rec))
	return rec, false, nil
}

// now returns the time in the database's resolution, so that a stored time is read
// back equal.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// check refuses an invalid task, and sets defaults.
func (s *Service) check(t *Task) (err error) {
	switch {
	case t.ID == "" || len(t.ID) > maxTaskID || !isPlain(t.ID):
		return fmt.Errorf("%w: an idempotency key has 1 to %d bytes and no control characters", ErrInvalid, maxTaskID)
	case strings.TrimSpace(t.Message) == "" && len(t.Uploads) == 0:
		return fmt.Errorf("%w: the message is empty", ErrInvalid)
	case len(t.Message)+len(t.System) > s.Limits.Message:
		return fmt.Errorf("%w: the message has more than %d bytes", ErrInvalid, s.Limits.Message)
	case !isText(t.Message) || !isText(t.System):
		return fmt.Errorf("%w: the message is not text", ErrInvalid)
	case len(t.Account) > maxTaskID || t.Account != "" && !isAccount(t.Account):
		return fmt.Errorf("%w: the account cannot be sent in a header", ErrInvalid)
	case t.Terms.Thinking != "" && !isThinking(t.Terms.Thinking):
		return fmt.Errorf("%w: the thinking level is one of %v", ErrInvalid, chat.Levels())
	case t.Trace != "" && !traceparent.IsID(t.Trace):
		return fmt.Errorf("%w: the trace has no id of a trace", ErrInvalid)
	case t.Timeout < 0 || t.Timeout > s.Limits.MaxTimeout:
		return fmt.Errorf("%w: the time limit is not between 0 and %v", ErrInvalid, s.Limits.MaxTimeout)
	}
	if t.Timeout == 0 {
		t.Timeout = s.Limits.Timeout
	}
	t.Timeout = max(t.Timeout.Truncate(time.Millisecond), time.Millisecond)
	if err := s.describeFiles(t); err != nil {
		return err
	}
	t.Headers, err = checkHeaders(t.Headers)
	return err
}

func isThinking(level string) bool { return slices.Contains(chat.Levels(), chat.Level(level)) }

func checkHeaders(headers map[string]string) (map[string]string, error) {
	if len(headers) == 0 {
		return nil, nil
	}
	checked, err := grant.Headers(headers)
	if err != nil {
		return nil, fmt.Errorf("%w: outboundHeaders: %w", ErrInvalid, err)
	}
	return checked, nil
}

func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }
func isPlain(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// duplicate returns the task that was accepted before under the same id, or nil.
func (s *Service) duplicate(ctx context.Context, t *Task) (*Record, error) {
	rec, err := s.lookup(ctx, taskID{t.Account, t.ID})
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	wants, err := t.asked(Quota{})
	if err != nil {
		return nil, err
	}
	if had, err := rec.asked(Quota{}); err != nil || had != wants || rec.Key != t.Key {
		return nil, errors.Join(ErrKeyReused, err)
	}
	return rec, nil
}

// lookup returns a task, under way or over.
func (s *Service) lookup(ctx context.Context, id taskID) (*Record, error) {
	if t := s.live(id); t != nil {
		return t.snapshot(), nil
	}
	list, err := s.rows.records(ctx, "account = ? AND id = ?", id.account, id.id)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, ErrNotFound
	}
	return list[0], nil
}

func (s *Service) live(id taskID) *task {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tasks[id]
}

// accept stores a task, and its session if that is new.
func (s *Service) accept(ctx context.Context, rec *Record) (fresh bool, err error) {
	err = s.tx(ctx, func(tx *sql.Tx) error {
		e, err := s.touch(ctx, tx, rec)
		if err != nil {
			return err
		}
		rec.Session = e.ID
		if fresh, err = s.rows.insert(ctx, tx, rec); err != nil || !fresh {
			return err
		}
		return s.rows.saveEntry(ctx, tx, e)
	})
	return fresh, err
}

// touch returns a task's session with the present time, made if it is new. It is
// not stored.
func (s *Service) touch(ctx context.Context, q querier, rec *Record) (*Entry, error) {
	e, err := s.entryOrNew(ctx, q, Key{Text: rec.Key, Agent: rec.Agent}, rec.Account)
	if err == nil {
		e.Updated = now()
	}
	return e, err
}

// entryOrNew returns a session, or a new one that is not stored yet.
func (s *Service) entryOrNew(ctx context.Context, q querier, key Key, account string) (*Entry, error) {
	e, err := s.rows.entry(ctx, q, sessionRef{account, key.Text})
	if !errors.Is(err, ErrNotFound) {
		return e, err
	}
	var count int
	if err := q.QueryRowContext(ctx, "SELECT count(*) FROM sessions WHERE account = ?", account).Scan(&count); err != nil {
		return nil, err
	}
	if count >= s.Limits.Sessions {
		return nil, fmt.Errorf("%w: the account has %d sessions; delete some", ErrBusy, count)
	}
	at := now()
	return &Entry{Key: key.Text, Account: account, Agent: key.Agent, ID: policy.Slug(key.Text), Created: at, Updated: at}, nil
}

// Task returns a task.
func (s *Service) Task(ctx context.Context, v View, id string) (*Record, error) {
	where, err := s.locate(ctx, v, id)
	if err != nil {
		return nil, err
	}
	return s.lookup(ctx, where)
}

// locate returns the account of a task: for views of all accounts the view's own,
// or else the one with the latest task of that id.
func (s *Service) locate(ctx context.Context, v View, id string) (taskID, error) {
	own := taskID{v.Account, id}
	if !v.All || s.live(own) != nil {
		return own, nil
	}
	var account string
	err := s.DB.QueryRowContext(ctx, "SELECT account FROM session_tasks WHERE id = ? ORDER BY account <> ?, number DESC LIMIT 1", id, v.Account).Scan(&account)
	if errors.Is(err, sql.ErrNoRows) {
		return taskID{}, ErrNotFound
	}
	return taskID{account, id}, s.DB.Explain(err)
}

// Wait returns a task when it is over. If the context ends before, it returns the
// present record and the context's error; ErrDraining means that the task is left
// to the next process.
func (s *Service) Wait(ctx context.Context, v View, id string) (*Record, error) {
	where, err := s.locate(ctx, v, id)
	if err != nil {
		return nil, err
	}
	if t := s.live(where); t != nil {
		select {
		case <-t.done:
		case <-ctx.Done():
			return t.snapshot(), ctx.Err()
		}
	}
	rec, err := s.lookup(context.WithoutCancel(ctx), where)
	if err == nil && !rec.State.Over() {
		err = ErrDraining
	}
	return rec, err
}

// Abort aborts one task of a session, or all if id is "". It returns the ids of
// those that were not over, without waiting for their end.
func (s *Service) Abort(ctx context.Context, v View, key, id string) (ids []string, err error) {
	_, p, err := s.find(v, key, "")
	if err != nil {
		return nil, err
	}
	return s.abort(ctx, p, id), nil
}

func (s *Service) abort(ctx context.Context, p sessionRef, id string) (ids []string) {
	var dropped []*task
	s.mu.Lock()
	l := s.queues[p]
	if l == nil {
		s.mu.Unlock()
		return nil
	}
	if t := l.current; t != nil && (id == "" || t.record.ID == id) {
		t.cancel(errAborted)
		ids = append(ids, t.record.ID)
	}
	stay := l.waiting[:0:0]
	for _, t := range l.waiting {
		if id != "" && t.record.ID != id {
			stay = append(stay, t)
			continue
		}
		dropped, ids = append(dropped, t), append(ids, t.record.ID)
		s.uncount(l, t.record.Task.bytes())
	}
	l.waiting = stay
	s.mu.Unlock()
	for _, t := range dropped {
		s.abortQueued(context.WithoutCancel(ctx), t)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeIdle(l)
	return ids
}

// abortQueued ends a task that has not started. If the database fails, its state is
// stored later.
func (s *Service) abortQueued(ctx context.Context, t *task) {
	save := s.finish(ctx, t, nil, errAborted)
	forget := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.tasks, t.id())
	}
	s.mu.Lock()
	later := save != nil && !s.draining
	if later {
		s.work.Go(func() { save(); forget() })
	}
	s.mu.Unlock()
	if !later {
		forget()
	}
}
