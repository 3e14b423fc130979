package sandboxes

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"
)

const (
	// longestSleep is after which the deadlines are read again without a reason: the
	// clock may have been set.
	longestSleep = time.Minute
	// retryEnd is after which ending a sandbox is tried again.
	retryEnd = time.Second
	// endingAtOnce is how many sandboxes are ended at once.
	endingAtOnce = 16
)

// watchDeadlines ends sandboxes at their deadlines until the service is closed. The
// deadlines are in the database: those that passed while no gateway ran are first.
func (s *Service) watchDeadlines() {
	for s.ctx.Err() == nil {
		wait := longestSleep
		if failed := s.endDue(); failed {
			wait = retryEnd
		} else if next, err := s.records.nextDeadline(s.ctx); err != nil {
			wait = retryEnd
		} else if !next.IsZero() {
			wait = min(max(next.Sub(s.Now()), 0), longestSleep)
		}
		timer := time.NewTimer(wait)
		select {
		case <-s.ctx.Done():
		case <-s.changed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// nextDeadline returns the first deadline; zero if there is none.
func (s records) nextDeadline(ctx context.Context) (time.Time, error) {
	var ms sql.NullInt64
	err := s.db.QueryRowContext(ctx, "SELECT min(deadline_ms) FROM api_sandboxes WHERE phase = 'ready'").Scan(&ms)
	if err != nil || !ms.Valid {
		return time.Time{}, s.db.Explain(err)
	}
	return time.UnixMilli(ms.Int64), nil
}

// Unfinished reports whether there is a sandbox whose deadline is to come, or that is
// being made or removed.
func (s *Service) Unfinished(ctx context.Context) (found bool, err error) {
	row := s.records.db.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM api_sandboxes WHERE phase IN ('creating', 'removing') OR phase = 'ready' AND deadline_ms < ?)", never.UnixMilli())
	err = s.records.db.Explain(row.Scan(&found))
	return found, err
}

// endDue ends what is due, and what was to be removed and is still there.
func (s *Service) endDue() (failed bool) {
	due, err := s.records.query(s.ctx, "WHERE phase = 'ready' AND deadline_ms <= ? OR phase = 'removing'", s.Now().UnixMilli())
	if err != nil {
		s.logFailure("deadlines could not be read", "", err)
		return true
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	turns := make(chan struct{}, endingAtOnce)
	for _, r := range due {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			if err := s.endOne(r); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = true
				s.logFailure("a sandbox could not be ended; it is tried again", r.ID, err)
			}
		})
	}
	all.Wait()
	return failed
}

func (s *Service) logFailure(message, id string, err error) {
	if s.ctx.Err() == nil {
		s.Logger.Warn(message, "sandbox", id, "error", err)
	}
}

// endOne ends one sandbox whose deadline has passed. The record is read again: it may
// have been extended meanwhile.
func (s *Service) endOne(found *Record) error {
	ctx := context.WithoutCancel(s.ctx)
	r, err := s.records.get(ctx, found.ID)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil
	case err != nil:
		return err
	case r.Phase == Removing:
		return s.remove(ctx, r)
	case r.Deadline.After(s.Now()):
		return nil
	case r.OnDeadline == OnDeadlineStop:
		if err := s.Stop(ctx, r); err != nil {
			return err
		}
		return s.records.setDeadline(ctx, r.ID, never)
	}
	return s.Remove(ctx, r)
}

// never is the deadline of a sandbox that was stopped at its deadline.
var never = time.UnixMilli(1<<53 - 1).UTC()
