// Package app opens an installation and wires its parts together.
package app

import (
	"context"
	"log/slog"

	"github.com/atoll-run/atoll/internal/agent/host"
	browsers "github.com/atoll-run/atoll/internal/browser/service"
	"github.com/atoll-run/atoll/internal/doctor"
	egress "github.com/atoll-run/atoll/internal/egress/service"
	"github.com/atoll-run/atoll/internal/gate/overlays"
	"github.com/atoll-run/atoll/internal/gateway/sandboxes"
	"github.com/atoll-run/atoll/internal/gateway/serve"
	"github.com/atoll-run/atoll/internal/model/service"
	"github.com/atoll-run/atoll/internal/relay/deliver"
	"github.com/atoll-run/atoll/internal/run/execute"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// App is an opened installation with everything that works on it.
type App struct {
	*provide.Installation
	Models  *service.Service
	Commits *deliver.Deliverer
	Agents  *host.Host
	Runs    *execute.Executor
	Sync    *overlays.Service
	Egress  *egress.Service
	// Browsers are those beside the sandboxes of sessions.
	Browsers *browsers.Service
}

// Open opens the state directory of the configuration in force.
func Open(ctx context.Context, o provide.LoadOptions) (*App, error) {
	settings, err := provide.Load(o)
	if err != nil {
		return nil, err
	}
	return OpenWith(ctx, settings, o.Logger)
}

// OpenWith opens the state directory of settings that were loaded before.
func OpenWith(ctx context.Context, s *provide.Settings, logger *slog.Logger) (*App, error) {
	installation, err := s.Open(ctx, logger)
	if err != nil {
		return nil, err
	}
	models := service.New(installation)
	commits := deliver.New(models)
	sync := overlays.New(models, commits.Approvals())
	installation.Follow, installation.FindMade = sync.Follow, sandboxes.Finder(installation)
	names := egress.New(models, commits.Approvals())
	installation.Manager.SetupEgress, installation.Manager.TrustedRoots = names.ForSetup, names.TrustedRoots
	pages := browsers.New(names)
	return &App{
		Installation: installation, Models: models, Commits: commits, Agents: host.New(models, commits, names, pages),
		Runs: execute.New(models, commits, names, sync), Sync: sync, Egress: names, Browsers: pages,
	}, nil
}

// Close closes what the app opened: browsers, egress in the background, the ledger and the audit log, then the
// installation.
func (a *App) Close() {
	a.endProcesses()
	a.closeBooks()
	a.Installation.Close()
}

// Leave is Close for a process that ends now, see provide.Installation.Leave.
func (a *App) Leave() {
	a.endProcesses()
	a.closeBooks()
	a.Installation.Leave()
}

// endProcesses ends browsers and commands in the background, whose egress ends with this
// process.
func (a *App) endProcesses() {
	if err := a.Browsers.Close(); err != nil {
		a.Logger.Warn("the end of a browser", "error", err)
	}
	a.Agents.Close()
}

func (a *App) closeBooks() {
	if err := a.Models.Close(); err != nil {
		a.Logger.Error("what was spent could not be written down", "error", err)
	}
}

// Doctor examines the installation.
func (a *App) Doctor() *doctor.Doctor {
	return &doctor.Doctor{Installation: a.Installation, Usage: a.Models}
}

// Parts are what a gateway works with.
func (a *App) Parts() *serve.Parts {
	return &serve.Parts{
		Installation: a.Installation, Models: a.Models, Commits: a.Commits, Agents: a.Agents, Runs: a.Runs, Sync: a.Sync, Egress: a.Egress, Doctor: a.Doctor(),
		Browsers: a.Browsers,
	}
}
