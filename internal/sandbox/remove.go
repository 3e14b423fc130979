package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/filelock"
)

// Remove removes one sandbox unless it is being changed or used (ErrBusy), or its files
// cannot be brought home (ErrNotSaved). still is called under both locks and decides whether
// the entry as it is now should go; nil means yes.
func (m *Manager) Remove(ctx context.Context, name string, still func(*Entry) bool) error {
	return m.removeUnused(ctx, name, still, saveTimeout)
}

// Discard removes one sandbox unless it is being changed or used (ErrBusy). Its files are of
// no use any more.
func (m *Manager) Discard(ctx context.Context, name string) error {
	return m.removeUnused(ctx, name, nil, 0)
}

func (m *Manager) removeUnused(ctx context.Context, name string, still func(*Entry) bool, save time.Duration) error {
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
		return m.removeEntry(ctx, entry, save)
	})
}

// ForceRemove removes a sandbox, also one in use or whose files cannot be brought home; nil if
// there is none.
func (m *Manager) ForceRemove(ctx context.Context, name string) error {
	lock, err := m.Leases.Hold(ctx, changeLock(name))
	if err != nil {
		return err
	}
	defer lock.Release()
	entry, err := m.Registry.Get(ctx, name)
	if errors.Is(err, ErrNotFound) {
		return nil
	} else if err != nil {
		return err
	}
	return m.removeEntry(ctx, entry, 0)
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

// removeEntry removes the sandbox of a row, and the row once it is gone. If the row is ready its
// files are brought home first, in the time save; 0 is not at all.
func (m *Manager) removeEntry(ctx context.Context, entry *Entry, save time.Duration) error {
	if entry.Phase != PhaseReady {
		save = 0
	}
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
	inst, err := rt.Open(ctx, entry.RuntimeName())
	switch {
	case errors.Is(err, ErrNotFound) || errors.Is(err, ErrForeign): // then ours is gone
		return m.deleteRow(ctx, rt, entry)
	case err != nil:
		return err
	}
	return m.remove(ctx, entry.ContainerName, inst, save)
}

// deleteRow deletes the row of a sandbox that does not exist, after what may be
// left of it outside. The caller holds the change lock.
func (m *Manager) deleteRow(ctx context.Context, rt Runtime, entry *Entry) error {
	if s, ok := rt.(Sweeper); ok {
		if err := s.Sweep(ctx, entry.RuntimeName()); err != nil {
			return err
		}
	}
	return m.deleteGone(ctx, entry.ContainerName)
}

// deleteGone deletes the row of a sandbox that is gone.
func (m *Manager) deleteGone(ctx context.Context, name string) error {
	if m.Removed != nil {
		if err := m.Removed(name); err != nil {
			return err
		}
	}
	defer m.watchRemoval(ctx, name)()
	return m.Registry.Delete(ctx, name)
}

// remove takes a sandbox away, row last. The caller holds the change lock.
func (m *Manager) remove(ctx context.Context, name string, inst Instance, save time.Duration) error {
	m.forget(name)
	if err := m.Registry.SetPhase(ctx, name, PhaseRemoving); err != nil {
		return err
	}
	m.Checkpoint("before remove")
	if err := m.save(ctx, name, inst, save); err != nil {
		return errors.Join(notSaved(name, err), m.Registry.SetPhase(context.WithoutCancel(ctx), name, PhaseReady))
	}
	if err := inst.Remove(ctx); err != nil {
		return fmt.Errorf("remove: %w", err)
	}
	m.Checkpoint("after remove")
	return m.deleteGone(context.WithoutCancel(ctx), name)
}
