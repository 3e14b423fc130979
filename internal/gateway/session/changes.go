package session

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/agent/chat"
)

// abortWait bounds how long Reset and Delete wait for a task that they aborted.
const abortWait = 15 * time.Second

// Reset starts a new transcript of a session; the old one and the settings stay.
// Tasks that are not over are aborted.
func (s *Service) Reset(ctx context.Context, v View, key string) (*Entry, error) {
	_, p, err := s.find(v, key, "")
	if err != nil {
		return nil, err
	}
	return s.exclusively(ctx, p, func(e *Entry) error {
		e.ID, e.Last, e.Total, e.Aborted, e.LastModel = newID(), chat.Usage{}, chat.Usage{}, false, ""
		e.Updated = now()
		return s.tx(ctx, func(tx *sql.Tx) error { return s.rows.saveEntry(ctx, tx, e) })
	})
}

func newID() string { return strings.ToLower(rand.Text()) }

// Delete removes a session and its transcript. Tasks that are not over are aborted.
func (s *Service) Delete(ctx context.Context, v View, key string) (*Entry, error) {
	_, p, err := s.find(v, key, "")
	if err != nil {
		return nil, err
	}
	return s.exclusively(ctx, p, func(e *Entry) error {
		if err := s.Worker.Forget(ctx, e); err != nil {
			return err
		}
		return s.tx(ctx, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "DELETE FROM sessions WHERE account = ? AND key = ?", p.account, p.key)
			return err
		})
	})
}

// exclusively aborts every task of a session, and changes it while none can start.
func (s *Service) exclusively(ctx context.Context, p sessionRef, change func(*Entry) error) (*Entry, error) {
	if _, err := s.rows.entry(ctx, s.DB, p); err != nil {
		return nil, err
	}
	s.abort(ctx, p, "")
	waits, cancel := context.WithTimeout(ctx, abortWait)
	defer cancel()
	release, err := s.hold(waits, p)
	if err != nil {
		return nil, err
	}
	defer release()
	e, err := s.rows.entry(ctx, s.DB, p)
	if err != nil {
		return nil, err
	}
	if err := change(e); err != nil {
		return nil, err
	}
	s.changed(e)
	return e, nil
}

// Compact shortens a session's transcript, and returns the numbers of messages
// before and after. It returns ErrBusy for a session with a task under way.
func (s *Service) Compact(ctx context.Context, v View, key string) (before, after int, err error) {
	_, p, err := s.find(v, key, "")
	if err != nil {
		return 0, 0, err
	}
	if _, err := s.rows.entry(ctx, s.DB, p); err != nil {
		return 0, 0, err
	}
	if s.works(p) {
		return 0, 0, fmt.Errorf("%w: the session is at work", ErrBusy)
	}
	release, err := s.hold(ctx, p)
	if err != nil {
		return 0, 0, err
	}
	defer release()
	e, err := s.rows.entry(ctx, s.DB, p)
	if err != nil {
		return 0, 0, err
	}
	before, after, err = s.Worker.Compact(ctx, e)
	if err == nil && before != after {
		s.changed(e)
	}
	return before, after, err
}

// Active returns the ids of a session's tasks that are not over, the one under way
// first.
func (s *Service) Active(e *Entry) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := []string{}
	l := s.queues[sessionRef{e.Account, e.Key}]
	if l == nil {
		return ids
	}
	if t := l.current; t != nil && !t.snapshot().State.Over() { // its end is published before its queue is released
		ids = append(ids, t.record.ID)
	}
	for _, t := range l.waiting {
		ids = append(ids, t.record.ID)
	}
	return ids
}

func (s *Service) works(p sessionRef) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.queues[p]
	return l != nil && l.current != nil
}
