package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The rest of a sandbox's life, a step at a time, for callers who decide
// themselves when each comes: the docker front end. Ensure is for all others.

// Make makes the sandbox of spec and leaves it stopped. ErrExists if the name is
// taken.
func (m *Manager) Make(ctx context.Context, spec *Spec) (err error) {
	lock, err := m.Leases.Hold(ctx, changeLock(spec.Name))
	if err != nil {
		return err
	}
	defer lock.Release()
	if _, err := m.Registry.Get(ctx, spec.Name); err == nil {
		return fmt.Errorf("sandbox %q: %w", spec.Name, ErrExists)
	} else if !errors.Is(err, ErrNotFound) {
		return err
	}
	rt, err := m.Runtime(ctx, spec.Backend)
	if err != nil {
		return err
	}
	if gaps := rt.Check(ctx, spec); len(gaps) > 0 {
		return gapError(gaps)
	}
	if err := refuseSetID(spec); err != nil {
		return err
	}
	if err := m.Registry.Put(ctx, m.intent(spec)); err != nil {
		return err
	}
	defer func() {
		if err != nil && !errors.Is(err, ErrExists) && !errors.Is(err, ErrForeign) {
			err = errors.Join(err, m.undo(ctx, rt, spec))
		} else if err != nil { // the name is somebody else's: only the row is ours
			err = errors.Join(err, m.Registry.Delete(context.WithoutCancel(ctx), spec.Name))
		}
	}()
	if _, err := rt.Create(ctx, spec); err != nil {
		return err
	}
	return m.Registry.SetPhase(ctx, spec.Name, PhaseReady)
}

// Change does something with a sandbox while nobody else changes it. Those who
// work in it are not asked.
func (m *Manager) Change(ctx context.Context, name string, do func(Instance) error) error {
	lock, err := m.Leases.Hold(ctx, changeLock(name))
	if err != nil {
		return err
	}
	defer lock.Release()
	inst, err := m.find(ctx, name)
	if err != nil {
		return err
	}
	if err := do(inst); err != nil {
		return err
	}
	return m.Registry.Touch(ctx, name, m.Now())
}

// find opens the sandbox of a row.
func (m *Manager) find(ctx context.Context, name string) (Instance, error) {
	entry, err := m.Registry.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	rt, err := m.Runtime(ctx, entry.Backend)
	if err != nil {
		return nil, err
	}
	return rt.Open(ctx, entry.RuntimeName())
}

// State is where a sandbox is in its life, or ErrNotFound.
func (m *Manager) State(ctx context.Context, name string) (State, error) {
	seen, err := m.summary(ctx, name)
	return seen.State, err
}

// summary returns what the machinery tells of a sandbox.
func (m *Manager) summary(ctx context.Context, name string) (Summary, error) {
	inst, err := m.find(ctx, name)
	if err != nil {
		return Summary{}, err
	}
	return inst.Seen(), nil
}

// endGrace is how long a sandbox has to end by itself before it is killed.
const endGrace = 2 * time.Second

// ForceStop stops a sandbox with everything that runs in it.
func (m *Manager) ForceStop(ctx context.Context, name string) error {
	m.forget(name)
	return m.Change(ctx, name, func(inst Instance) error { return inst.Stop(ctx, endGrace) })
}

// A Pauser is an instance that can hold all its processes where they are.
type Pauser interface {
	Pause(ctx context.Context) error
}

// Pause holds a sandbox, or lets it go on.
func (m *Manager) Pause(ctx context.Context, name string, paused bool) error {
	return m.Change(ctx, name, func(inst Instance) error {
		if !paused {
			return resume(ctx, inst)
		}
		p, ok := inst.(Pauser)
		if !ok {
			return fmt.Errorf("this runtime cannot pause a sandbox: %w", ErrUnsupported)
		}
		return p.Pause(ctx)
	})
}
