// Package app builds everything from the configuration and the state directory,
// and takes it down in reverse. It is the only importer of runtime/*, and the
// place where a session becomes a running sandbox: plan, prepare, ensure.
package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/config/trust"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/metrics"
	"github.com/atoll-run/atoll/internal/runtime/linux"
	"github.com/atoll-run/atoll/internal/runtime/rootfs"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
	"github.com/atoll-run/atoll/internal/store"
)

// Options are what an App is opened with.
type Options struct {
	Getenv     func(string) string
	ConfigPath string       // named on the command line; "" searches
	OwnConfig  bool         // look for the file where only its owner puts one
	Logger     *slog.Logger // nil discards
}

// Settings are the configuration in force and where it came from. They need no
// state directory and no engine.
type Settings struct {
	Config   *config.Config
	Location config.Location
	Project  *trust.Found // the file of the working directory; nil if there is none
	Paths    config.Paths
	Notices  []string // what a person should know about the installation
	getenv   func(string) string
	packages string // the root whose packages images are made of; tests have another than "/"
	images   func() (*rootfs.Store, error)
	linux    func() (*linux.Runtime, error)
}

// Environment is what the configuration is looked for in.
func Environment(o Options) (config.Environment, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return config.Environment{}, errhint.With(fmt.Errorf("home directory: %w", err), "set HOME")
	}
	cwd, err := os.Getwd()
	if err != nil && !o.OwnConfig {
		return config.Environment{}, fmt.Errorf("working directory: %w", err)
	}
	return config.Environment{Getenv: o.Getenv, Home: home, Cwd: cwd, Explicit: o.ConfigPath, OwnOnly: o.OwnConfig}, nil
}

// Load finds and reads the configuration.
func Load(o Options) (*Settings, error) {
	environment, err := Environment(o)
	if err != nil {
		return nil, err
	}
	paths, err := environment.Paths()
	if err != nil {
		return nil, err
	}
	notices, err := PrivateState(environment)
	if err != nil {
		return nil, err
	}
	opened, err := trust.Open(environment)
	if err != nil {
		return nil, err
	}
	return (&Settings{Config: opened.Config, Notices: notices, Location: opened.Location, Project: opened.Found, Paths: paths, getenv: o.Getenv, packages: "/"}).withLinux(), nil
}

// PrivateState makes sure that no other user can look into the state directory,
// which holds configuration, keys and records.
func PrivateState(env config.Environment) (notices []string, err error) {
	paths, err := env.Paths()
	if err != nil {
		return nil, err
	}
	dir := paths.AtollState
	mode, err := hostpath.MakePrivate(dir)
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	if mode != 0 {
		notices = append(notices, fmt.Sprintf("the state directory %s had mode %04o, which let other users in; it has 0700 now", dir, mode))
	}
	return notices, nil
}

// Subject names the agent and session that a call is for.
type Subject struct {
	AgentID    string
	SessionKey string
	Account    string
	Adjust     func(*config.Agent)
	MostBoxes  int   // sandboxes that the account may have; 0 is no limit
	Temporary  bool  // the private copy ends with the sandbox
	Memory     int64 // the limit where none is configured; 0 is the machine's default
	Exact      bool  // a sandbox that was made with other settings than Adjust asks for is refused
}

// Plan decides about a session's sandbox without making anything.
func (s *Settings) Plan(who Subject) (*plan.Plan, error) { return plan.Make(s.request(who)) }

// Alone is the same agent in a session of its own, whose sandbox nobody else has.
func (s *Settings) Alone(who Subject) (Subject, error) {
	agent, err := s.request(who).Agent()
	if err != nil {
		return who, err
	}
	who.AgentID, who.SessionKey, who.Temporary = "", "agent:"+agent+":run-"+strings.ToLower(rand.Text()), true
	return who, nil
}

func (s *Settings) request(who Subject) plan.Request {
	return plan.Request{
		Config: s.Config, Paths: s.Paths, Getenv: s.getenv,
		AgentID: who.AgentID, SessionKey: who.SessionKey, Account: who.Account, Adjust: who.Adjust, Temporary: who.Temporary, Memory: who.Memory,
	}
}

const databaseFile = "atoll.db"

// App is an opened installation.
type App struct {
	*Settings
	Manager      *sandbox.Manager
	Installation string

	logger   *slog.Logger
	registry *sandbox.Registry
	db       *store.DB
	runtimes runtimes
	leases   *filelock.Locks
	money    money
	quotas   quotas
	many     func() bool           // several accounts use this process; nil if it has no accounts
	refused  *metrics.Counters     // sandboxes that an account could not be given; nil outside of a gateway
	testFree func() (int64, error) // in place of what the disk says; nil outside of tests
}

// Open opens the state directory of the configuration in force.
func Open(ctx context.Context, o Options) (*App, error) {
	settings, err := Load(o)
	if err != nil {
		return nil, err
	}
	return settings.Open(ctx, o.Logger)
}

// Open opens the state directory.
func (s *Settings) Open(ctx context.Context, logger *slog.Logger) (*App, error) {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	a := &App{Settings: s, logger: logger}
	a.runtimes = runtimes{app: a}
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
func (a *App) openState(ctx context.Context) (err error) {
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
	a.leases = book
	if a.db, err = store.Open(ctx, filepath.Join(state, databaseFile)); err != nil {
		return err
	}
	a.registry = sandbox.NewRegistry(a.db)
	if err := a.identify(ctx); err != nil {
		return errors.Join(err, a.db.Close())
	}
	a.Manager = sandbox.NewManager(sandbox.Options{
		Registry: a.registry, Leases: book, Runtime: a.runtimes.get, Backends: []string{backendLinux, backendDocker, backendPodman}, Logger: a.logger,
		Unmade: a.unmade, Leftovers: a.removeTemporary,
	})
	return nil
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
func (a *App) importLegacy(ctx context.Context) error {
	if err := a.registry.ImportLegacy(ctx, a.Paths.AtollState); err != nil {
		return err
	}
	if !a.isOpenClaws() {
		return nil
	}
	return a.registry.ImportLegacy(ctx, a.Paths.OpenClawState)
}

// isOpenClaws reports whether the configuration in force is OpenClaw's own, and
// has a state directory that is not ours.
func (s *Settings) isOpenClaws() bool {
	dir, err := s.Config.StateDir()
	return err == nil && dir == s.Paths.OpenClawState && dir != s.Paths.AtollState
}

// Close drops wires, engines and the database, in that order.
func (a *App) Close() {
	a.Leave()
	_ = a.db.Close()
}

// Leave is Close for a process that ends now. What it wrote stays in the log
// beside the database, where the next process finds it: the last one to close
// moves the log into the file, and waits for the disk.
func (a *App) Leave() {
	if err := a.closeMoney(); err != nil {
		a.logger.Error("what was spent could not be written down", "error", err)
	}
	a.Manager.Close()
	a.runtimes.close()
}
