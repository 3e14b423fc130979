package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/filelock"
)

// A Forker is a runtime that can make a sandbox with the files that another has
// in its root. ErrExists if the name is taken; ErrUnsupported, with the reason,
// if it cannot be done of this one, as it is. On failure nothing is left.
type Forker interface {
	Fork(ctx context.Context, from string, spec *Spec) (Instance, error)
}

// ForkOptions say how a fork is made.
type ForkOptions struct {
	// Stop stops the source first. It is refused while the source is in use.
	Stop bool
	// Begin is called with the row of the fork before anything is made.
	Begin func(ctx context.Context, row *Entry) error
	// Files copies what the source has outside its root, such as a private
	// workspace, under the change lock of the source. Running says whether it runs.
	Files func(ctx context.Context, running bool) error
	// Undo takes away what Files made, when something later failed.
	Undo func(ctx context.Context) error
}

// Fork makes the sandbox of spec with the files of another, started. The set-up
// command is not run again: what it made is among the files.
func (m *Manager) Fork(ctx context.Context, from string, spec *Spec, o ForkOptions) error {
	locks, err := m.holdBoth(ctx, changeLock(from), changeLock(spec.Name))
	if err != nil {
		return provision(spec, "lock", err)
	}
	defer locks.release()
	if err := m.fork(ctx, from, spec, o); err != nil {
		return provision(spec, "fork", err)
	}
	return nil
}

type locks []*filelock.Lock

func (l locks) release() {
	for _, held := range l {
		held.Release()
	}
}

// holdBoth takes two locks in the order that everybody takes them in.
func (m *Manager) holdBoth(ctx context.Context, a, b string) (held locks, err error) {
	names := []string{a, b}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		l, err := m.Leases.Hold(ctx, name)
		if err != nil {
			held.release()
			return nil, err
		}
		held = append(held, l)
	}
	return held, nil
}

func (m *Manager) fork(ctx context.Context, from string, spec *Spec, o ForkOptions) (err error) {
	defer m.watchStart(ctx, spec, "fork", time.Now(), &err)
	rt, forker, err := m.forker(ctx, from, spec)
	if err != nil {
		return err
	}
	if gaps := rt.Check(ctx, spec); len(gaps) > 0 {
		return gapError(gaps)
	}
	source, running, err := m.ensureStopped(ctx, rt, from, o.Stop)
	if err != nil {
		return err
	}
	row := m.intent(spec)
	if o.Begin != nil {
		if err := o.Begin(ctx, row); err != nil {
			return err
		}
	}
	if err := m.Registry.Put(ctx, row); err != nil {
		return err
	}
	err = m.makeFork(ctx, spec, func() (Instance, error) {
		if o.Files != nil {
			if err := o.Files(ctx, running); err != nil {
				return nil, err
			}
		}
		return forker.Fork(ctx, source, spec)
	})
	if err != nil {
		undone := m.undo(ctx, rt, spec)
		if o.Undo != nil {
			undone = errors.Join(undone, o.Undo(context.WithoutCancel(ctx)))
		}
		return errors.Join(err, undone)
	}
	return m.Registry.SetPhase(ctx, spec.Name, PhaseReady)
}

func (m *Manager) makeFork(ctx context.Context, spec *Spec, fork func() (Instance, error)) error {
	inst, err := fork()
	if err != nil {
		return err
	}
	if err := inst.Start(ctx); err != nil {
		return err
	}
	ready := *spec
	ready.SetupCommand = ""
	mach, err := m.setUp(ctx, &ready, inst)
	if err == nil {
		_ = mach.Close()
	}
	return err
}

// forker finds the machinery of the source, and refuses what is no fork.
func (m *Manager) forker(ctx context.Context, from string, spec *Spec) (Runtime, Forker, error) {
	entry, err := m.Registry.Get(ctx, from)
	if err != nil {
		return nil, nil, err
	}
	if _, err := m.Registry.Get(ctx, spec.Name); err == nil {
		return nil, nil, errhint.With(fmt.Errorf("sandbox %q: %w", spec.Name, ErrExists), "choose another session, or remove that one with atoll sandbox recreate")
	} else if !errors.Is(err, ErrNotFound) {
		return nil, nil, err
	}
	if entry.Account != spec.Account {
		return nil, nil, fmt.Errorf("sandbox %q belongs to another billing account: %w", from, ErrDenied)
	}
	rt, err := m.Runtime(ctx, entry.Backend)
	if err != nil {
		return nil, nil, err
	}
	forker, ok := rt.(Forker)
	if !ok || spec.Backend != entry.Backend {
		return nil, nil, errhint.With(fmt.Errorf("sandboxes of the %s backend cannot be forked: %w", entry.Backend, ErrUnsupported),
			"set sandbox.backend to linux, and make the sandbox anew")
	}
	return rt, forker, nil
}

// ensureStopped returns the name that the runtime has for the source, and whether it
// runs, after stopping it if that was asked for.
func (m *Manager) ensureStopped(ctx context.Context, rt Runtime, from string, stop bool) (source string, running bool, err error) {
	entry, err := m.Registry.Get(ctx, from)
	if err != nil {
		return "", false, err
	}
	source = entry.RuntimeName()
	inst, err := rt.Open(ctx, source)
	if err != nil {
		return source, false, err
	}
	if inst.Seen().State != StateRunning || !stop {
		return source, inst.Seen().State == StateRunning, nil
	}
	users, err := m.Leases.TryHold(useLock(from))
	if errors.Is(err, filelock.ErrHeld) {
		return source, true, errhint.With(fmt.Errorf("somebody works in it: %w", ErrBusy), "wait until that has ended")
	} else if err != nil {
		return source, true, err
	}
	defer users.Release()
	m.forget(from)
	return source, false, inst.Stop(ctx, endGrace)
}
