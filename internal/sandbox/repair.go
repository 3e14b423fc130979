package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Repair brings registry and machinery together again after a crash: rows left
// in the middle of something are finished, sandboxes of this installation that
// the registry lost are adopted or removed, rows whose sandbox is gone are
// dropped. What is locked by another process is left alone, and so is
// everything that does not carry this installation's label.
func (m *Manager) Repair(ctx context.Context) ([]Removal, error) {
	done, err := m.finishUnfinished(ctx)
	if err != nil {
		return done, err
	}
	named, err := m.Registry.Backends(ctx)
	if err != nil {
		return done, err
	}
	backends := slices.Compact(slices.Sorted(slices.Values(append(named, m.Backends...))))
	for _, backend := range backends {
		repaired, err := m.repairBackend(ctx, backend)
		done = append(done, repaired...)
		if err != nil {
			// One engine that is down must not keep the others from repair.
			m.Logger.InfoContext(ctx, "not repaired", "backend", backend, "error", err)
		}
	}
	if m.Leftovers != nil {
		done = append(done, m.Leftovers(ctx)...)
	}
	return done, nil
}

func (m *Manager) finishUnfinished(ctx context.Context) ([]Removal, error) {
	names, err := m.Registry.Unfinished(ctx)
	if err != nil {
		return nil, err
	}
	var done []Removal
	for _, name := range names {
		var entry *Entry
		err := m.Remove(ctx, name, func(e *Entry) bool { entry = e; return e.Phase != PhaseReady })
		switch {
		case errors.Is(err, ErrBusy): // somebody is at it
		case entry != nil:
			done = append(done, Removal{entry, "left unfinished by a crash (" + string(entry.Phase) + ")", err})
		case err != nil:
			m.Logger.WarnContext(ctx, "unfinished sandbox not looked after", "sandbox", name, "error", err)
		}
	}
	return done, nil
}

// repairBackend compares names only: the rows and the machinery may each hold
// thousands, and nearly all of them agree.
func (m *Manager) repairBackend(ctx context.Context, backend string) ([]Removal, error) {
	// Rows first: what is made after the look at them has no row here, but is in
	// the list, and is looked at again under its lock.
	rows, err := m.Registry.Names(ctx, backend)
	if err != nil {
		return nil, err
	}
	rt, present, err := m.inventory(ctx, backend)
	if err != nil {
		return nil, err
	}
	var done []Removal
	for _, s := range present {
		if rows[s.Name] == "" {
			done = append(done, m.takeOver(ctx, backend, s)...)
		}
		delete(rows, s.Name)
	}
	for _, name := range rows {
		done = append(done, m.dropRow(ctx, rt, name)...)
	}
	return done, m.sweepUnrecorded(ctx, rt)
}

// sweepUnrecorded removes what the runtime has no readable record of. What is
// being made, or in use, is locked and stays.
func (m *Manager) sweepUnrecorded(ctx context.Context, rt Runtime) error {
	f, ok := rt.(Finder)
	if !ok {
		return nil
	}
	names, err := f.Unrecorded(ctx)
	for _, name := range names {
		swept := m.Exclusively(name, func() error {
			m.Logger.InfoContext(ctx, "removing what is left of a sandbox without a record", "sandbox", name)
			return f.Sweep(ctx, name)
		})
		if !errors.Is(swept, ErrBusy) {
			err = errors.Join(err, swept)
		}
	}
	return err
}

// askTimeout is how long an engine may take to tell what it has. One that hangs
// must not keep the others from repair, nor a session from starting.
const askTimeout = 10 * time.Second

func (m *Manager) inventory(ctx context.Context, backend string) (Runtime, []Summary, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	rt, err := m.Runtime(ctx, backend)
	if err != nil {
		return nil, nil, err
	}
	present, err := rt.List(ctx)
	return rt, present, err
}

// takeOver adopts a sandbox that has no row, or removes it if it may be half made.
func (m *Manager) takeOver(ctx context.Context, backend string, s Summary) []Removal {
	entry, removed := entryOf(s, backend), false
	err := m.Exclusively(s.Name, func() error {
		if known, err := m.Registry.knows(ctx, s.Name); known || err != nil {
			return err // nil: somebody was quicker
		}
		if err := m.Registry.Put(ctx, entry); err != nil {
			return err
		}
		if isWhole(s) {
			m.Logger.InfoContext(ctx, "adopted a sandbox that the registry had lost", "sandbox", s.Name)
			return nil
		}
		removed = true
		return m.removeEntry(ctx, entry, 0)
	})
	if !removed && (err == nil || errors.Is(err, ErrBusy)) {
		return nil
	}
	return []Removal{{entry, "not in the registry, and perhaps half made", err}}
}

// isWhole reports whether a sandbox without a row was surely made completely:
// it was started, and no set-up command belongs to it that may not have run. Of one that
// was made for a pool nobody knows whom it was given to.
func isWhole(s Summary) bool {
	return s.Labels[LabelPool] == "" && s.Labels[LabelSetup] == "" && (s.State == StateRunning || s.State == StateStopped || s.State == StatePaused)
}

// dropRow deletes a row whose sandbox is gone, after looking again.
func (m *Manager) dropRow(ctx context.Context, rt Runtime, name string) []Removal {
	var entry *Entry
	err := m.Exclusively(name, func() (err error) {
		if entry, err = m.Registry.Get(ctx, name); err != nil {
			return err
		}
		if _, err := rt.Open(ctx, entry.RuntimeName()); !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrForeign) {
			return errors.Join(err, fmt.Errorf("sandbox %q is there after all: %w", name, ErrBusy))
		}
		return m.deleteRow(ctx, rt, entry)
	})
	if errors.Is(err, ErrBusy) || errors.Is(err, ErrNotFound) {
		return nil
	}
	return []Removal{{entry, "its container is gone", err}}
}
