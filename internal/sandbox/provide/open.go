package provide

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/logid"
	"github.com/atoll-run/atoll/internal/metrics"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
	"github.com/atoll-run/atoll/internal/store"
)

const databaseFile = "atoll.db"

// Installation is an opened state directory with its sandboxes.
type Installation struct {
	*Settings
	Manager *sandbox.Manager
	ID      string // of the installation; sandboxes carry it as a label

	Logger   *slog.Logger
	Registry *sandbox.Registry
	DB       *store.DB
	Locks    *filelock.Locks
	// Owned says that this process is the gateway of the state directory, and no earlier
	// one may reach its sandboxes any more: see Own.
	Owned           bool
	starts          uint64 // of gateways, this one included
	runtimes        runtimes
	making          beingMade
	shared          func() bool       // several accounts use this process; nil if it has no accounts
	RefusedAccounts *metrics.Counters // sandboxes that an account could not be given; nil outside of a gateway
	// FindMade, if set, says for whom a sandbox of agent api was made.
	FindMade func(context.Context, *sandbox.Entry) (Subject, error)
	// Follow, if set, is called when a sandbox is ready, and what it returns before the
	// sandbox is released.
	Follow func(*plan.Plan) (end func())
	// Claimed, if set, is called for each new sandbox that a pool could provide: with the name that
	// it has there, "" if there was none for it.
	Claimed func(spec *sandbox.Spec, member string)
	// MeasureFree replaces the measurement of the free disk space; nil outside of tests.
	MeasureFree func() (int64, error)
}

// Open opens the state directory, and makes one where there is none.
func (s *Settings) Open(ctx context.Context, logger *slog.Logger) (*Installation, error) {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	a := &Installation{Settings: s, Logger: slog.New(logid.NewHandler(logger.Handler()))}
	a.runtimes = runtimes{in: a}
	if err := a.openState(ctx); err != nil {
		return nil, stateError(s.Paths.AtollState, err)
	}
	if err := a.importLegacy(ctx); err != nil {
		a.Close()
		return nil, err
	}
	return a, nil
}

// openState opens, or makes, what is in the state directory.
func (a *Installation) openState(ctx context.Context) (err error) {
	state := a.Paths.AtollState
	if err = os.MkdirAll(state, 0o700); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	a.openReserve()
	if err := beginInstallation(state); err != nil {
		return err
	}
	book, err := filelock.Open(filepath.Join(state, "leases"))
	if err != nil {
		return err
	}
	a.Locks = book
	if a.DB, err = store.Open(ctx, filepath.Join(state, databaseFile)); err != nil {
		return err
	}
	a.Registry = sandbox.NewRegistry(a.DB)
	if err := a.identify(ctx); err != nil {
		return errors.Join(err, a.DB.Close())
	}
	a.Manager = sandbox.NewManager(sandbox.Options{
		Registry: a.Registry, Leases: book, Runtime: a.Runtime, Backends: a.backends(), Logger: a.Logger,
		Unmade: a.unmade, Removed: a.removeEgress, Leftovers: a.removeTemporary,
	})
	return nil
}

// backends are those that are asked for sandboxes even if no row names them.
func (s *Settings) backends() []string {
	return slices.AppendSeq([]string{BackendLinux, BackendDocker, BackendPodman}, maps.Keys(s.Runtimes))
}

// stateError adds what to do about a state directory that cannot be used,
// unless the error already says so.
func stateError(state string, err error) error {
	switch {
	case errhint.Of(err) != "":
		return err
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return errhint.With(err, "free space on the disk of "+state+", or set ATOLL_STATE_DIR to a directory on another one")
	}
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return errhint.With(err, "set ATOLL_STATE_DIR to a directory that you can write to")
	}
	return err
}

// importLegacy takes over the registries of earlier programs, each once: those
// in our own directory, and OpenClaw's if its configuration is the one in force.
func (a *Installation) importLegacy(ctx context.Context) error {
	if err := a.Registry.ImportLegacy(ctx, a.Paths.AtollState); err != nil {
		return err
	}
	if !a.isOpenClaws() {
		return nil
	}
	return a.Registry.ImportLegacy(ctx, a.Paths.OpenClawState)
}

// isOpenClaws reports whether the configuration in force is OpenClaw's own, and
// has a state directory that is not ours.
func (s *Settings) isOpenClaws() bool {
	dir, err := s.Config.StateDir()
	return err == nil && dir == s.Paths.OpenClawState && dir != s.Paths.AtollState
}

// Close closes the connections to sandboxes, the runtimes and the database, in
// that order.
func (a *Installation) Close() {
	a.Leave()
	_ = a.DB.Close()
}

// Leave is Close for a process that ends now. What it wrote stays in the log
// beside the database, where the next process finds it: the last one to close
// moves the log into the file, and waits for the disk.
func (a *Installation) Leave() {
	a.Manager.Close()
	a.runtimes.close()
}
