package sandboxes

import (
	"context"
	"errors"
	"time"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/sandbox"
)

const (
	// busyWait is how long the removal of a sandbox waits for other processes to
	// notice that it is gone, and busyPause how long between two tries.
	busyWait  = 3 * time.Second
	busyPause = 50 * time.Millisecond
)

// Remove ends a sandbox, whatever is done in it, and removes it with its files.
func (s *Service) Remove(ctx context.Context, r *Record) error {
	ctx = context.WithoutCancel(ctx) // what is begun is finished
	if err := s.records.setRemoving(ctx, r.ID); err != nil {
		return err
	}
	err := s.remove(ctx, r)
	if err != nil {
		s.wake() // it is tried again
	}
	if errors.Is(err, sandbox.ErrBusy) {
		return nil // it is gone; its files go when another process has noticed
	}
	return err
}

// remove removes the sandbox, its files and last its record, whose phase is Removing.
func (s *Service) remove(ctx context.Context, r *Record) error {
	entry := &sandbox.Entry{ContainerName: r.Name, SessionKey: r.Details.SessionKey, WorkspaceDir: r.Details.WorkspaceDir, AgentID: config.APIAgent, Account: r.Account}
	for end := time.Now().Add(busyWait); ; {
		s.closeID(r.ID)
		_, err := s.In.RemoveSandbox(ctx, entry, true, true)
		switch {
		case err == nil:
			return s.records.delete(ctx, r.ID)
		case !errors.Is(err, sandbox.ErrBusy) || time.Now().After(end):
			return err
		}
		select {
		case <-s.ctx.Done():
			return err
		case <-time.After(busyPause):
		}
	}
}

// Stop stops a sandbox and every command in it. Its files stay.
func (s *Service) Stop(ctx context.Context, r *Record) error {
	s.closeID(r.ID)
	return s.In.Stop(context.WithoutCancel(ctx), r.Name, true)
}

// Start starts a stopped sandbox; nil if it runs.
func (s *Service) Start(ctx context.Context, r *Record) error {
	if r.Phase != Ready {
		return ErrEnding
	}
	return s.In.Manager.Change(ctx, r.Name, func(i sandbox.Instance) error {
		switch i.Seen().State {
		case sandbox.StateRunning:
			return nil
		case sandbox.StatePaused:
			return errors.New("it is paused")
		}
		return i.Start(ctx)
	})
}

// Extend moves the deadline to so many seconds from now.
func (s *Service) Extend(ctx context.Context, r *Record, seconds int64) (*Record, error) {
	if err := checkTimeout(seconds); err != nil {
		return nil, err
	}
	moved := *r
	moved.Deadline = s.Now().UTC().Truncate(time.Millisecond).Add(time.Duration(seconds) * time.Second)
	if err := s.records.setDeadline(ctx, r.ID, moved.Deadline); err != nil {
		return nil, err
	}
	s.wake()
	return &moved, nil
}
