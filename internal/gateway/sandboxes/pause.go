package sandboxes

import (
	"context"
	"errors"
	"time"

	"github.com/atoll-run/atoll/internal/sandbox"
)

// ErrMemory is a sandbox whose memory cannot be kept while it is paused.
var ErrMemory = errors.New("a sandbox that reaches names outside cannot keep its memory while it is paused")

// State returns what a sandbox does now.
func (s *Service) State(ctx context.Context, r *Record) (sandbox.State, error) {
	state, err := s.In.Manager.State(ctx, r.Name)
	if errors.Is(err, sandbox.ErrNotFound) {
		return "", ErrNotFound
	}
	return state, err
}

// Pause holds a sandbox with its memory until Resume, or stops it so that only its files
// stay. It has no deadline then.
func (s *Service) Pause(ctx context.Context, r *Record, memory bool) error {
	if r.Phase != Ready {
		return ErrEnding
	}
	if err := s.hold(context.WithoutCancel(ctx), r, memory); err != nil {
		return err
	}
	return s.records.setDeadline(context.WithoutCancel(ctx), r.ID, never)
}

func (s *Service) hold(ctx context.Context, r *Record, memory bool) error {
	if !memory {
		return s.Stop(ctx, r)
	}
	if l := s.join(r.ID); l != nil {
		reaches := l.names != nil // its processes end with their names
		s.leave(l)
		if reaches {
			return ErrMemory
		}
	}
	s.closeID(r.ID)
	return s.In.Manager.Pause(ctx, r.Name, true)
}

// Resume lets a paused sandbox go on, starts a stopped one, and moves its deadline to so
// many seconds from now.
func (s *Service) Resume(ctx context.Context, r *Record, seconds int64) (*Record, error) {
	if err := checkTimeout(seconds); err != nil {
		return nil, err
	}
	state, err := s.State(ctx, r)
	switch {
	case err != nil:
		return nil, err
	case state == sandbox.StatePaused:
		err = s.In.Manager.Pause(ctx, r.Name, false)
	default:
		err = s.Start(ctx, r)
	}
	if err != nil {
		return nil, err
	}
	return s.Extend(ctx, r, seconds)
}

// ExtendTo is Extend that never moves a deadline to an earlier time.
func (s *Service) ExtendTo(ctx context.Context, r *Record, seconds int64) (*Record, error) {
	if err := checkTimeout(seconds); err != nil {
		return nil, err
	}
	if r.Deadline.After(s.Now().Add(time.Duration(seconds) * time.Second)) {
		return r, nil
	}
	return s.Extend(ctx, r, seconds)
}

// Limits returns what bounds a sandbox.
func (s *Service) Limits(r *Record) (sandbox.Limits, error) {
	p, err := s.In.Plan(s.subjectOf(r))
	if err != nil {
		return sandbox.Limits{}, err
	}
	return withDefaults(p), nil
}
