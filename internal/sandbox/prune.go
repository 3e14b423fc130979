package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/filelock"
)

// PruneLimits are one agent's; zero switches a limit off.
type PruneLimits struct {
	Idle time.Duration // since the last use
	Age  time.Duration // since creation
}

// Removal is what became of one sandbox that was to go.
type Removal struct {
	Entry  *Entry `json:"entry"`
	Reason string `json:"reason"`
	Err    error  `json:"-"` // nil: it is gone
}

// PruneIfDue prunes unless this installation did so a moment ago. What a crash
// left in the middle of something is always finished: without a crash that
// costs one small query.
func (m *Manager) PruneIfDue(ctx context.Context, limits func(agentID string) PruneLimits) ([]Removal, error) {
	mine, err := m.Registry.Turn(ctx, "last-prune", m.Now(), m.PruneInterval)
	if err != nil {
		return nil, err
	}
	if !mine {
		return m.finishUnfinished(ctx)
	}
	return m.Prune(ctx, limits)
}

// Prune repairs what crashes left, then removes every sandbox that is idle or
// old by the limits of its own agent and that nobody uses. A removal that fails
// keeps its row, and is tried again next time.
func (m *Manager) Prune(ctx context.Context, limits func(agentID string) PruneLimits) ([]Removal, error) {
	done, err := m.Repair(ctx)
	if err != nil {
		return done, err
	}
	agents, err := m.Registry.Agents(ctx)
	if err != nil {
		return done, err
	}
	for _, agent := range agents {
		removed, err := m.pruneAgent(ctx, agent, limits(agent))
		done = append(done, removed...)
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

func (m *Manager) pruneAgent(ctx context.Context, agent string, limits PruneLimits) ([]Removal, error) {
	now := m.Now()
	if err := m.Registry.clampTimes(ctx, agent, now); err != nil {
		return nil, err
	}
	stale, err := m.Registry.Stale(ctx, agent, before(now, limits.Idle), before(now, limits.Age))
	if err != nil {
		return nil, err
	}
	var done []Removal
	for _, entry := range stale {
		reason := staleness(entry, limits, now)
		err := m.Remove(ctx, entry.ContainerName, func(e *Entry) bool { return staleness(e, limits, m.Now()) != "" })
		if errors.Is(err, ErrBusy) {
			continue
		}
		done = append(done, Removal{entry, reason, err})
	}
	return done, nil
}

// before is the moment d ago; the zero time, which is before everything, if the
// limit is off.
func before(now time.Time, d time.Duration) time.Time {
	if d <= 0 {
		return time.Time{}
	}
	return now.Add(-d)
}

// staleness says why an entry is to go, or "".
func staleness(e *Entry, limits PruneLimits, now time.Time) string {
	idle, age := now.Sub(time.UnixMilli(e.LastUsedAtMs)), now.Sub(time.UnixMilli(e.CreatedAtMs))
	switch {
	case limits.Idle > 0 && idle > limits.Idle:
		return fmt.Sprintf("idle for %v (limit %v)", idle.Round(time.Minute), limits.Idle)
	case limits.Age > 0 && age > limits.Age:
		return fmt.Sprintf("made %v ago (limit %v)", age.Round(time.Minute), limits.Age)
	}
	return ""
}

// Remove removes one sandbox unless it is being changed or used (ErrBusy). still
// is called under both locks and decides whether the entry as it is
// now should go; nil means yes.
func (m *Manager) Remove(ctx context.Context, name string, still func(*Entry) bool) error {
	return m.Exclusively(name, func() error {
		entry, err := m.Registry.Get(ctx, name)
		if errors.Is(err, ErrNotFound) {
			return nil
		} else if err != nil {
			return err
		}
		if still != nil && !still(entry) {
			return fmt.Errorf("sandbox %q: used again: %w", name, ErrBusy)
		}
		return m.removeEntry(ctx, entry)
	})
}

// Exclusively runs f under both locks of name, or returns ErrBusy.
func (m *Manager) Exclusively(name string, f func() error) error {
	change, err := m.Leases.TryHold(changeLock(name))
	if err != nil {
		return busy(name, err)
	}
	defer change.Release()
	users, err := m.Leases.TryHold(useLock(name))
	if err != nil {
		return busy(name, err)
	}
	defer users.Release()
	return f()
}

// busy turns a lock that is held elsewhere into ErrBusy.
func busy(name string, err error) error {
	if errors.Is(err, filelock.ErrHeld) {
		err = ErrBusy
	}
	return fmt.Errorf("sandbox %q: %w", name, err)
}

// removeEntry removes the sandbox of a row, and the row once it is gone.
func (m *Manager) removeEntry(ctx context.Context, entry *Entry) error {
	if entry.Imported { // the container is another program's
		return m.Registry.Delete(ctx, entry.ContainerName)
	}
	if entry.Phase == PhaseCreating && m.Unmade != nil {
		if err := m.Unmade(ctx, entry); err != nil {
			return err
		}
	}
	rt, err := m.Runtime(ctx, entry.Backend)
	if err != nil {
		return err
	}
	inst, err := rt.Open(ctx, entry.ContainerName)
	switch {
	case errors.Is(err, ErrNotFound) || errors.Is(err, ErrForeign): // then ours is gone
		return m.deleteRow(ctx, rt, entry.ContainerName)
	case err != nil:
		return err
	}
	return m.remove(ctx, entry.ContainerName, inst)
}
