package session

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/errhint"
)

// Service runs the tasks of all sessions. It is safe for concurrent use. An idle
// session uses no memory, only its row.
type Service struct {
	Options
	rows rows
	hub  *hub
	ctx  context.Context // of all tasks
	stop context.CancelCauseFunc
	work sync.WaitGroup

	writes sync.Mutex // SQLite has one writer at a time, and makes others poll

	mu       sync.Mutex
	draining bool
	queues   map[sessionRef]*taskQueue // sessions with tasks that are not over
	tasks    map[taskID]*task          // tasks that are not over
	waiting  int                       // tasks that have not begun
	queued   map[string]int            // the same by account
	bytes    int64                     // of tasks that have not begun
	held     map[string]int64          // the same by account
	running  int
	busy     map[string]int          // running, by account
	ready    map[string][]*taskQueue // that can start a task, by account
	order    []string                // accounts in ready, the longest waiting first
	ended    int                     // tasks since old ones were removed
	unsaved  int                     // tasks whose state could not be stored yet
}

// tx runs f in one write transaction.
func (s *Service) tx(ctx context.Context, f func(*sql.Tx) error) error {
	s.writes.Lock()
	defer s.writes.Unlock()
	return s.DB.Tx(ctx, f)
}

// Stats counts the work of a service.
type Stats struct {
	Running     int
	Waiting     int
	Sessions    int // with something to do
	Subscribers int
	Unsaved     int // tasks whose state could not be stored yet
}

// Stats returns the present counts.
func (s *Service) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{Running: s.running, Waiting: s.waiting, Sessions: len(s.queues), Subscribers: s.hub.count(), Unsaved: s.unsaved}
}

// Subscribe returns the events of a view from now on. A reader that leaves more
// than buffer events unread loses its subscription.
func (s *Service) Subscribe(v View, buffer int) *Subscription {
	return s.hub.add(audienceOf(v), min(max(buffer, 1), s.Limits.Buffer))
}

// Follow returns the events of one task from now on; the task may not exist yet.
// The caller has to check that it may be seen.
func (s *Service) Follow(account, id string, buffer int) *Subscription {
	return s.hub.add(audience{account: account, task: id}, min(max(buffer, 1), s.Limits.Buffer))
}

// find returns the session that a key, and an account if one is named, mean to a
// caller: never one outside its view.
func (s *Service) find(v View, text, account string) (Key, sessionRef, error) {
	key, err := parseKey(text, s.Names)
	if err != nil {
		return Key{}, sessionRef{}, err
	}
	if key.Account != "" && account != "" && account != key.Account {
		return Key{}, sessionRef{}, ErrNotFound
	}
	for _, named := range []string{key.Account, account} {
		if named != "" && !v.Sees(named) {
			return Key{}, sessionRef{}, ErrNotFound
		}
	}
	where := v.Account
	for _, named := range []string{account, key.Account} {
		if named != "" {
			where = named
		}
	}
	return key, sessionRef{where, key.Text}, s.checkAgent(key.Agent)
}

// checkAgent refuses agents that do not exist.
func (s *Service) checkAgent(agent string) error {
	if s.Agents == nil || slices.Contains(s.Agents(), agent) {
		return nil
	}
	return errhint.With(fmt.Errorf("%w: unknown agent id %q", ErrInvalid, agent), "agents are those of agents.list or agents.entries in the configuration")
}

// Recover resumes what an earlier process left: tasks that had not started are
// queued again; those that had are failed as interrupted, for their effects are
// unknown.
func (s *Service) Recover(ctx context.Context) error {
	open, err := s.rows.records(ctx, "ended_at_ms = 0 ORDER BY number")
	if err != nil {
		return err
	}
	var problems []error
	for _, rec := range open {
		if rec.State == Queued {
			s.requeue(rec)
		} else if !s.isLive(rec) {
			problems = append(problems, s.interrupt(ctx, rec))
		}
	}
	problems = append(problems, s.cleanFiles())
	problems = append(problems, s.rows.forgetTasks(ctx, time.Now().Add(-s.Limits.Keep)))
	return errors.Join(problems...)
}

func (s *Service) isLive(rec *Record) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tasks[taskID{rec.Account, rec.ID}] != nil
}

// interrupt fails a task that an earlier process had started.
func (s *Service) interrupt(ctx context.Context, rec *Record) error {
	rec.State, rec.Code, rec.Problem = Failed, CodeInterrupted, "the gateway ended while the task was under way"
	rec.Ended = time.Now().UTC()
	return s.tx(ctx, func(tx *sql.Tx) error { return s.rows.save(ctx, tx, rec) })
}

// requeue queues a task that an earlier process accepted, whatever the limits.
func (s *Service) requeue(rec *Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tasks[taskID{rec.Account, rec.ID}] != nil {
		return
	}
	if s.Attachments != nil && len(rec.Files) > 0 {
		s.Attachments.Adopt(rec.Account, rec.filesID(), rec.Files)
	}
	l := s.queueOf(sessionRef{rec.Account, rec.Key})
	s.reserve(l, rec.Task.bytes())
	s.enqueue(l, newTask(rec))
}

// Drain accepts and starts nothing new, and waits for tasks under way. They are
// interrupted when the context ends first. Queued tasks are left to the next
// process.
func (s *Service) Drain(ctx context.Context) error {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	done := make(chan struct{})
	go func() { s.work.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		s.stop(errInterrupted)
		<-done
		return ctx.Err()
	}
}

// Close interrupts tasks under way, waits for them, and ends all subscriptions.
func (s *Service) Close() {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	s.stop(errInterrupted)
	s.work.Wait()
	s.hub.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, t := range s.tasks { // they wait for the next process
		delete(s.tasks, id)
		close(t.done)
	}
}
