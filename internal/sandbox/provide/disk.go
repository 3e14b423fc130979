package provide

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
)

const (
	// DiskReserve must stay free where the state directory is: what Atoll itself
	// has to write down comes before what agents want to.
	DiskReserve = plan.CopyReserve
	diskLook    = time.Second
)

// ErrDiskFull ends a program that would fill the disk.
var ErrDiskFull = errors.New("the disk is full")

// fillsDisk reports whether code in the sandbox of a plan can write below the
// state directory: its private copy of the workspace is there, and with an
// engine the directory of its wire. Neither has a size of its own.
func fillsDisk(p *plan.Plan) bool { return p.Layout.HasCopy() || p.Spec.Backend != BackendLinux }

// roomFor refuses to work in a sandbox that could take the last of the disk.
func (a *Installation) roomFor(p *plan.Plan) error {
	if !fillsDisk(p) {
		return nil
	}
	free, err := a.CheckDisk()
	if errors.Is(err, ErrDiskFull) {
		return a.DiskFull(free)
	}
	return err
}

// DiskFull is the error of a disk with so many bytes free, with what to do about it.
func (a *Installation) DiskFull(free int64) error {
	return errhint.With(fmt.Errorf("%w: %d MiB are free below %s, and %d are kept for Atoll itself beside %[4]d for everything else", ErrDiskFull, free>>20, a.Paths.AtollState, DiskReserve>>20),
		"free some of it: remove what sandboxes left there (atoll sandbox list, atoll sandbox recreate), or set ATOLL_STATE_DIR to a directory on another disk")
}

// Exec carries out a command in the sandbox. Where the command could fill the
// disk of the state directory, it is ended before it has.
func (s *ReadySandbox) Exec(ctx context.Context, command *machine.Command) (*machine.Result, error) {
	if !fillsDisk(s.Plan) {
		return s.Machine.Exec(ctx, command)
	}
	guarded, stop := s.in.WatchDisk(ctx)
	defer stop()
	result, err := s.Machine.Exec(guarded, command)
	if s.in.DiskFilled(guarded) {
		free, _ := s.in.FreeBytes()
		return nil, s.in.DiskFull(free)
	}
	return result, err
}

// CheckRoom returns the error of DiskFull if so many bytes more would take what is kept of the
// disk for Atoll itself.
func (a *Installation) CheckRoom(bytes int64) error {
	free, err := a.FreeBytes()
	if err != nil || free-bytes >= DiskReserve {
		return err
	}
	return a.DiskFull(free)
}

// FreeBytes is how many bytes there are for us where the state directory is.
func (a *Installation) FreeBytes() (int64, error) {
	if a.MeasureFree != nil {
		return a.MeasureFree()
	}
	var st unix.Statfs_t
	if err := unix.Statfs(a.Paths.AtollState, &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail) * st.Bsize, nil
}

// WatchDisk ends a context when the disk runs full.
func (a *Installation) WatchDisk(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	look := time.NewTicker(diskLook)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer look.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
			}
			if free, err := a.FreeBytes(); err == nil && free < DiskReserve {
				cancel(ErrDiskFull)
			}
		}
	}()
	return ctx, func() { cancel(nil); <-done }
}
