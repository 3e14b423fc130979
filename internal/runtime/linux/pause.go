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

// Pause freezes every process of the sandbox, the guest too. It needs a control
// group, which the first pause makes.
func (i *Instance) Pause(ctx context.Context) error {
	return i.change("pause", func() error {
		if err := i.recordGroup(); err != nil {
			return err
		}
		f, err := i.freezer()
		if err != nil || i.record.Run.Paused {
			return err
		}
		// Recorded first: if this process ends half way, another can resume it.
		i.record.Run.Paused = true
		if err := i.record.save(i.dir); err != nil {
			return err
		}
		if err := f.Freeze(ctx, i.record.Run.PID); err != nil {
			i.record.Run.Paused = false
			return errors.Join(err, i.record.save(i.dir))
		}
		return nil
	})
}

// recordGroup records that there is a control group to be removed, before it is
// made.
func (i *Instance) recordGroup() error {
	if !i.record.Groupless {
		return nil
	}
	i.record.Groupless = false
	return errors.Join(i.writeID(), i.record.save(i.dir))
}

// Resume thaws a paused sandbox.
func (i *Instance) Resume(context.Context) error { return i.change("resume", i.thaw) }

// thaw thaws every process, and records it afterwards.
func (i *Instance) thaw() error {
	if !i.record.Run.Paused {
		return nil
	}
	f, err := i.freezer()
	if err != nil {
		return err
	}
	if err := f.Thaw(); err != nil {
		return err
	}
	i.record.Run.Paused = false
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

// change calls how for a running sandbox.
func (i *Instance) change(verb string, how func() error) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	err := i.reload()
	if err != nil {
		return err
	}
	if !i.record.Run.alive() {
		err = sandbox.ErrNotRunning
	} else {
		err = how()
	}
	if err != nil {
		return fmt.Errorf("sandbox %q: %s: %w", i.name, verb, err)
	}
	i.updateSeen()
	return nil
}
