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

// Service has everything that happens in sessions. It is safe for concurrent use.
// A session that nobody works on costs nothing but its row.
type Service struct {
	Options
	rows rows
	hub  *hub
	ctx  context.Context // of all tasks
	stop context.CancelCauseFunc
	work sync.WaitGroup

	writes sync.Mutex // one at a time: SQLite lets in no more, and has others ask again and again

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
	ready    map[string][]*taskQueue // that could begin a task, by account
	order    []string                // accounts in ready, who waited longest first
	ended    int                     // tasks, since old ones were forgotten
	unsaved  int                     // tasks whose state the database does not take now
}

// tx runs f in one write transaction.
func (s *Service) tx(ctx context.Context, f func(*sql.Tx) error) error {
	s.writes.Lock()
	defer s.writes.Unlock()
	return s.DB.Tx(ctx, f)
}

// Stats is how much there is to do.
type Stats struct {
	Running     int
	Waiting     int
	Sessions    int // with something to do
	Subscribers int
	Unsaved     int // tasks whose state could not be written yet
}

// Stats returns what is going on.
func (s *Service) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{Running: s.running, Waiting: s.waiting, Sessions: len(s.queues), Subscribers: s.hub.count(), Unsaved: s.unsaved}
}

// Subscribe shows what happens in the sessions of a view from now on. A reader
// that leaves more than buffer events unread loses its subscription.
func (s *Service) Subscribe(v View, buffer int) *Subscription {
	return s.hub.add(audienceOf(v), min(max(buffer, 1), s.Limits.Buffer))
}

// Follow shows what happens to one task of an account from now on; the task may be
// yet to come. Whether the caller may see it is the caller's to ask first.
func (s *Service) Follow(account, id string, buffer int) *Subscription {
	return s.hub.add(audience{account: account, task: id}, min(max(buffer, 1), s.Limits.Buffer))
}

// find settles which session a caller means by a key, and an account where it
// names one: never one that the caller may not see.
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

// Recover goes on with what an earlier process left: tasks that had not begun are
// queued again, those that had are over, for what they did cannot be known.
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

// interrupt ends a task that an earlier process had begun.
func (s *Service) interrupt(ctx context.Context, rec *Record) error {
	rec.State, rec.Code, rec.Problem = Failed, CodeInterrupted, "the gateway ended while the task was under way"
	rec.Ended = time.Now().UTC()
	return s.tx(ctx, func(tx *sql.Tx) error { return s.rows.save(ctx, tx, rec) })
}

// requeue puts a task that an earlier process accepted back, whatever the limits:
// it was promised.
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

// Drain takes nothing new, begins nothing, and waits for the tasks under way. When
// the context ends first they are interrupted. What has not begun is begun by the
// next process.
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

// Close interrupts what is under way, waits for it, and ends all subscriptions.
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
