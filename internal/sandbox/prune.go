package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"
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
	return m.pruneAfter(ctx, m.PruneInterval, limits)
}

// PruneAhead prunes when half of the time has passed after which PruneIfDue would: where
// one process does so every now and then, PruneIfDue has nothing to do in any other.
func (m *Manager) PruneAhead(ctx context.Context, limits func(agentID string) PruneLimits) ([]Removal, error) {
	return m.pruneAfter(ctx, m.PruneInterval/2, limits)
}

func (m *Manager) pruneAfter(ctx context.Context, interval time.Duration, limits func(agentID string) PruneLimits) ([]Removal, error) {
	mine, err := m.Registry.Turn(ctx, "last-prune", m.Now(), interval)
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
		err := m.removeUnused(ctx, entry.ContainerName, func(e *Entry) bool { return staleness(e, limits, m.Now()) != "" }, pruneSaveTimeout)
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
