package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
)

// fillsDisk reports whether code in the sandbox of a plan can write below the
// state directory: its private copy of the workspace is there, and with an
// engine the directory of its wire. Neither has a size of its own.
func fillsDisk(p *plan.Plan) bool { return p.Layout.HasCopy() || p.Spec.Backend != backendLinux }

// roomFor refuses to work in a sandbox that could take the last of the disk.
func (a *App) roomFor(p *plan.Plan) error {
	if !fillsDisk(p) {
		return nil
	}
	free, err := a.enough()
	if errors.Is(err, errDiskFull) {
		return a.diskFull(free)
	}
	return err
}

func (a *App) diskFull(free int64) error {
	return errhint.With(fmt.Errorf("%w: %d MiB are free below %s, and %d are kept for Atoll itself beside %[4]d for everything else", errDiskFull, free>>20, a.Paths.AtollState, diskReserve>>20),
		"free some of it: remove what sandboxes left there (atoll sandbox list, atoll sandbox recreate), or set ATOLL_STATE_DIR to a directory on another disk")
}

// Exec carries out a command in the sandbox. Where the command could fill the
// disk of the state directory, it is ended before it has.
func (s *Session) Exec(ctx context.Context, command *machine.Command) (*machine.Result, error) {
	if s.app == nil || !fillsDisk(s.Plan) {
		return s.Machine.Exec(ctx, command)
	}
	guarded, stop := s.app.watchDisk(ctx)
	defer stop()
	result, err := s.Machine.Exec(guarded, command)
	if s.app.ranFull(guarded) {
		free, _ := s.app.free()
		return nil, s.app.diskFull(free)
	}
	return result, err
}
