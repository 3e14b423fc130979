package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/errhint"
)

// How long the files of a sandbox may take to be brought home before it is removed.
const (
	saveTimeout = 10 * time.Minute
	// pruneSaveTimeout is saveTimeout for prune, which also runs inside requests for other
	// sandboxes.
	pruneSaveTimeout = time.Minute
)

// Save brings the files of a sandbox home that is about to be removed by force: ErrNotSaved if
// it answers and they cannot be brought. Also one in use; nil if there is none.
func (m *Manager) Save(ctx context.Context, name string) error {
	lock, err := m.Leases.Hold(ctx, changeLock(name))
	if err != nil {
		return err
	}
	defer lock.Release()
	inst, err := m.openReady(ctx, name)
	if err == nil && inst != nil {
		err = m.save(ctx, name, inst, saveTimeout)
	}
	if err != nil {
		return fmt.Errorf("sandbox %q: %w", name, err)
	}
	return nil
}

// openReady opens a sandbox whose row is ready; nil if there is none.
func (m *Manager) openReady(ctx context.Context, name string) (Instance, error) {
	entry, err := m.Registry.Get(ctx, name)
	if err == nil && entry.Phase != PhaseReady {
		return nil, nil
	}
	var rt Runtime
	if err == nil {
		rt, err = m.Runtime(ctx, entry.Backend)
	}
	var inst Instance
	if err == nil {
		inst, err = rt.Open(ctx, entry.RuntimeName())
	}
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrForeign) {
		return nil, nil
	}
	return inst, err
}

// save brings the files of a sandbox on another machine home, in so much time. One that does
// not answer has lost them.
func (m *Manager) save(ctx context.Context, name string, inst Instance, most time.Duration) error {
	s, ok := inst.(Saver)
	if !ok || most == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	err := s.Save(ctx)
	if err != nil && !errors.Is(err, ErrNotSaved) {
		m.Logger.WarnContext(ctx, "the files of a sandbox that does not answer are lost", "sandbox", name, "error", err)
		return nil
	}
	return err
}

// notSaved is the error of a sandbox that stays because of its files.
func notSaved(name string, err error) error {
	hint := cmp.Or(errhint.Of(err), "try again, or remove it with its files: atoll rm --discard")
	return errhint.With(fmt.Errorf("sandbox %q is not removed: %w", name, err), hint)
}
