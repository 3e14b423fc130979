package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/atoll-run/atoll/internal/errhint"
)

// taskQueue is the queue of one session: it runs one task at a time, in order.
type taskQueue struct {
	sessionRef
	promised int // places reserved by tasks that are being stored
	waiting  []*task
	current  *task
	held     bool // while the session is changed: no task starts
	offered  bool // it is listed in ready
}

func (l *taskQueue) canBegin() bool { return l.current == nil && !l.held && len(l.waiting) > 0 }
func (l *taskQueue) idle() bool {
	return l.current == nil && !l.held && l.promised == 0 && len(l.waiting) == 0 && !l.offered
}

// task is a task that is not over.
type task struct {
	mu     sync.Mutex // guards the fields below and the order of events
	record Record
	seq    int64
	said   strings.Builder // text of the model's present message
	over   bool
	level  string // see VerboseLevel

	ctx    context.Context
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when it is over, or when the process ends before it started
	gone   chan struct{} // closed when its queue is released
}

func newTask(rec *Record) *task {
	return &task{record: *rec, done: make(chan struct{}), gone: make(chan struct{})}
}

// snapshot returns a copy of the task's record.
func (t *task) snapshot() *Record {
	t.mu.Lock()
	defer t.mu.Unlock()
	rec := t.record
	return &rec
}

func (t *task) id() taskID { return taskID{t.record.Account, t.record.ID} } // they never change

// queueOf returns the queue of a session. The caller holds s.mu, as for everything
// below.
func (s *Service) queueOf(p sessionRef) *taskQueue {
	l := s.queues[p]
	if l == nil {
		l = &taskQueue{sessionRef: p}
		s.queues[p] = l
	}
	return l
}

// admit reserves a place in a session's queue, or returns ErrBusy.
func (s *Service) admit(p sessionRef, size int64) (*taskQueue, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return nil, ErrDraining
	}
	waits := 0
	if l := s.queues[p]; l != nil {
		waits = len(l.waiting) + l.promised
	}
	for _, limit := range []struct {
		is, most int
		what     string
	}{
		{waits, s.Limits.PerSession, "in this session"},
		{s.queued[p.account], s.Limits.PerAccount, "in this account"},
		{s.waiting, s.Limits.Waiting, "here"},
	} {
		if limit.is >= limit.most {
			return nil, errhint.With(fmt.Errorf("%w: %d tasks wait %s", ErrBusy, limit.is, limit.what), "try again when some are done")
		}
	}
	if s.held[p.account]+size > s.Limits.AccountBytes || s.bytes+size > s.Limits.WaitingBytes {
		return nil, errhint.With(fmt.Errorf("%w: tasks with %d bytes wait", ErrBusy, s.bytes), "try again when some are done")
	}
	l := s.queueOf(p)
	s.reserve(l, size)
	return l, nil
}

func (s *Service) reserve(l *taskQueue, size int64) {
	l.promised++
	s.waiting++
	s.queued[l.account]++
	s.bytes += size
	s.held[l.account] += size
}

// bytes returns the memory of a waiting task.
func (t *Task) bytes() int64 { return int64(len(t.Message) + len(t.System)) }

// unreserve gives back a place that admit reserved.
func (s *Service) unreserve(l *taskQueue, size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.promised--
	s.uncount(l, size)
	s.removeIdle(l)
}

// uncount subtracts a waiting task.
func (s *Service) uncount(l *taskQueue, size int64) {
	s.waiting--
	s.bytes -= size
	if s.held[l.account] -= size; s.held[l.account] <= 0 {
		delete(s.held, l.account)
	}
	if s.queued[l.account]--; s.queued[l.account] == 0 {
		delete(s.queued, l.account)
	}
}

func (s *Service) removeIdle(l *taskQueue) {
	if l.idle() {
		delete(s.queues, l.sessionRef)
	}
}

// enqueue puts a task into its reserved place.
func (s *Service) enqueue(l *taskQueue, t *task) {
	l.promised--
	l.waiting = append(l.waiting, t)
	s.tasks[t.id()] = t
	s.offer(l)
	s.dispatch()
}

// offer lists a queue that can start a task.
func (s *Service) offer(l *taskQueue) {
	if l.offered || !l.canBegin() {
		return
	}
	l.offered = true
	if len(s.ready[l.account]) == 0 {
		s.order = append(s.order, l.account)
	}
	s.ready[l.account] = append(s.ready[l.account], l)
}

// dispatch starts tasks up to the limit.
func (s *Service) dispatch() {
	for s.running < s.Limits.Running && !s.draining {
		l := s.next()
		if l == nil {
			return
		}
		t := l.waiting[0]
		l.waiting = l.waiting[1:]
		l.current = t
		s.uncount(l, t.record.Task.bytes())
		s.running++
		s.busy[l.account]++
		t.ctx, t.cancel = context.WithCancelCause(s.ctx)
		s.work.Go(func() { s.execute(l, t) })
	}
}

// next returns the queue that has waited longest, of the account with the fewest
// running tasks, so that one account cannot keep another from its first task.
func (s *Service) next() *taskQueue {
	for len(s.order) > 0 {
		at := 0
		for i, account := range s.order {
			if s.busy[account] < s.busy[s.order[at]] {
				at = i
			}
		}
		account := s.order[at]
		l := s.ready[account][0]
		s.ready[account] = s.ready[account][1:]
		s.order = slices.Delete(s.order, at, at+1)
		if len(s.ready[account]) > 0 {
			s.order = append(s.order, account)
		} else {
			delete(s.ready, account)
		}
		l.offered = false
		if l.canBegin() {
			return l
		}
		s.removeIdle(l)
	}
	return nil
}

// release ends a task's turn in its queue.
func (s *Service) release(l *taskQueue, t *task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.cancel(nil)
	delete(s.tasks, t.id())
	l.current = nil
	s.running--
	if s.busy[l.account]--; s.busy[l.account] == 0 {
		delete(s.busy, l.account)
	}
	close(t.gone)
	s.offer(l)
	s.dispatch()
	s.removeIdle(l)
}

// hold keeps a session from starting tasks, for one caller at a time, and waits for
// the task under way.
func (s *Service) hold(ctx context.Context, p sessionRef) (release func(), err error) {
	l, current, err := s.lockQueue(p)
	if err != nil {
		return nil, err
	}
	release = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		l.held = false
		s.offer(l)
		s.dispatch()
		s.removeIdle(l)
	}
	if current == nil {
		return release, nil
	}
	select {
	case <-current.gone:
		return release, nil
	case <-ctx.Done():
		release()
		return nil, errors.Join(fmt.Errorf("%w: the session is at work", ErrBusy), ctx.Err())
	}
}

func (s *Service) lockQueue(p sessionRef) (l *taskQueue, current *task, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l = s.queueOf(p); l.held {
		return nil, nil, fmt.Errorf("%w: the session is being changed", ErrBusy)
	}
	l.held = true
	return l, l.current, nil
}
