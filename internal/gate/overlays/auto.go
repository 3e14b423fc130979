package overlays

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/gate"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

const (
	autoBy       = "sync.mode auto" // who applies, in the audit log and the history
	autoPatience = 5 * time.Minute  // for the last time, when the sandbox is released
)

// Follow applies what passes of a sandbox's changes every interval if its sync.mode is
// auto, until done is called, which does so once more. It returns nil for others.
func (s *Service) Follow(box *provide.ReadySandbox) (done func()) {
	rules := &box.Plan.Agent.Sandbox
	if rules.WorkspaceAccess != config.AccessOverlay || rules.Sync.Mode != config.SyncAuto {
		return nil
	}
	found, err := s.of(box.Plan)
	if err != nil {
		s.Logger.Warn("changes are not applied by themselves", "sandbox", box.Plan.Spec.Name, "error", err)
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		found.applyEvery(ctx, time.Duration(rules.Sync.Interval)*time.Second)
	}()
	return func() {
		cancel()
		<-ended
		ctx, cancel := context.WithTimeout(context.Background(), autoPatience)
		defer cancel()
		found.applyAll(ctx)
	}
}

func (s *subject) applyEvery(ctx context.Context, interval time.Duration) {
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			s.applyAll(ctx)
		}
	}
}

// applyAll applies what passes in every overlay. What goes wrong is in the log: the
// changes wait.
func (s *subject) applyAll(ctx context.Context) {
	for n, t := range s.trees {
		if t.Torn {
			continue // a person decides
		}
		if err := s.applyPassing(ctx, n, t); err != nil && ctx.Err() == nil {
			s.Logger.Warn("changes were not applied", "base", t.Base, "error", err)
		}
	}
}

// applyPassing collects what changed in an overlay and applies what passes. If that
// would delete many files, a person decides about deletions.
func (s *subject) applyPassing(ctx context.Context, n int, t *overlay.Tree) error {
	g, _, err := s.openWithCommits(ctx, n, t)
	if err != nil {
		return err
	}
	defer g.Close() //nolint:errcheck // what was applied is on disk
	set, err := g.Collect(ctx)
	if err != nil {
		return err
	}
	passing := slices.DeleteFunc(set.Entries, func(e gate.Entry) bool { return e.Verdict != gate.Pass })
	err = g.applyEntries(ctx, passing)
	if errors.Is(err, gate.ErrManyDeletions) {
		return g.applyEntries(ctx, slices.DeleteFunc(passing, func(e gate.Entry) bool { return e.Kind == overlay.Deleted }))
	}
	return err
}

func (g *opened) applyEntries(ctx context.Context, entries []gate.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	choices := make([]gate.Choice, 0, len(entries))
	for i := range entries {
		choices = append(choices, gate.Choice{Path: entries[i].Path, SHA256: entries[i].SHA256})
	}
	_, err := g.approve(ctx, "approve", choices, gate.Decision{By: autoBy})
	return err
}
