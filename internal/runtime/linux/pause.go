package linux

import (
	"context"
	"errors"
	"fmt"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/runtime/cgroups"
	"github.com/atoll-run/atoll/internal/sandbox"
)

var (
	_ sandbox.Pauser  = (*Instance)(nil)
	_ sandbox.Resumer = (*Instance)(nil)
)

// Pause holds every process of the sandbox where it is, the guest too. It takes
// a control group, which is made when it is first asked for.
func (i *Instance) Pause(ctx context.Context) error {
	return i.change("pause", func() error {
		if err := i.expectGroup(); err != nil {
			return err
		}
		f, err := i.freezer()
		if err != nil || i.record.Life.Paused {
			return err
		}
		// Noted first: whoever finds it half done resumes it.
		i.record.Life.Paused = true
		if err := i.record.save(i.dir); err != nil {
			return err
		}
		if err := f.Freeze(ctx, i.record.Life.PID); err != nil {
			i.record.Life.Paused = false
			return errors.Join(err, i.record.save(i.dir))
		}
		return nil
	})
}

// expectGroup notes that there is a control group to be removed, before there is.
func (i *Instance) expectGroup() error {
	if !i.record.Groupless {
		return nil
	}
	i.record.Groupless = false
	return errors.Join(i.noteID(), i.record.save(i.dir))
}

// Resume lets a paused sandbox go on.
func (i *Instance) Resume(context.Context) error { return i.change("resume", i.thaw) }

// thaw lets every process go on, and notes it afterwards.
func (i *Instance) thaw() error {
	if !i.record.Life.Paused {
		return nil
	}
	f, err := i.freezer()
	if err != nil {
		return err
	}
	if err := f.Thaw(); err != nil {
		return err
	}
	i.record.Life.Paused = false
	return i.record.save(i.dir)
}

func (i *Instance) freezer() (*cgroups.Freezer, error) {
	host, err := i.runtime.groups()
	if err != nil {
		return nil, err
	}
	f, err := host.Freezer(i.record.Summary.ID)
	if err != nil {
		return nil, errhint.With(fmt.Errorf("%w: %w", sandbox.ErrUnsupported, err),
			"holding processes takes a control group: start the sandbox with `"+InScope+" atoll …`, or as root")
	}
	return f, nil
}

// change does something to a sandbox that runs.
func (i *Instance) change(verb string, how func() error) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	err := i.look()
	if err != nil {
		return err
	}
	if !i.record.Life.alive() {
		err = sandbox.ErrNotRunning
	} else {
		err = how()
	}
	if err != nil {
		return fmt.Errorf("sandbox %q: %s: %w", i.name, verb, err)
	}
	i.note()
	return nil
}
