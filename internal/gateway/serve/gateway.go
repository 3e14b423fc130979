// Package serve is the gateway of an installation: sessions, runs and everything
// about them, over WebSocket and HTTP.
package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atoll-run/atoll/internal/agent/host"
	"github.com/atoll-run/atoll/internal/approval"
	"github.com/atoll-run/atoll/internal/audit"
	running "github.com/atoll-run/atoll/internal/browser/service"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/config/poolkeys"
	"github.com/atoll-run/atoll/internal/doctor"
	egress "github.com/atoll-run/atoll/internal/egress/service"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/gate/overlays"
	"github.com/atoll-run/atoll/internal/gateway"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/browsers"
	"github.com/atoll-run/atoll/internal/gateway/e2b"
	"github.com/atoll-run/atoll/internal/gateway/health"
	"github.com/atoll-run/atoll/internal/gateway/live"
	"github.com/atoll-run/atoll/internal/gateway/monitor"
	"github.com/atoll-run/atoll/internal/gateway/pools"
	"github.com/atoll-run/atoll/internal/gateway/portproxy"
	"github.com/atoll-run/atoll/internal/gateway/rest"
	"github.com/atoll-run/atoll/internal/gateway/sandboxes"
	"github.com/atoll-run/atoll/internal/gateway/session"
	"github.com/atoll-run/atoll/internal/gateway/terminal"
	"github.com/atoll-run/atoll/internal/gateway/ws"
	"github.com/atoll-run/atoll/internal/mcp"
	"github.com/atoll-run/atoll/internal/membudget"
	"github.com/atoll-run/atoll/internal/model/service"
	"github.com/atoll-run/atoll/internal/relay/deliver"
	"github.com/atoll-run/atoll/internal/run/execute"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/tracing"
	"github.com/atoll-run/atoll/internal/version"
)

// Parts are the parts of an installation that a gateway works with.
type Parts struct {
	*provide.Installation
	Models  *service.Service
	Commits *deliver.Deliverer
	Agents  *host.Host
	Runs    *execute.Executor
	Sync    *overlays.Service
	Egress  *egress.Service
	Doctor  *doctor.Doctor
	// Browsers are those beside the sandboxes of sessions.
	Browsers *running.Service
}

// Options are what the command line says about a gateway.
type Options struct {
	Listen []string      // HOST:PORT each; none is the configuration's
	Grace  time.Duration // for what is under way when it ends; 0 is the default
	// Private listens on the socket of the state directory alone, and starts even where
	// models cannot be asked: it serves the programs of its own user.
	Private bool
	Idle    time.Duration // after which it ends if it is not used; 0 is never
}

// Grace is how long tasks and runs have to finish when a gateway ends.
const Grace = 30 * time.Second

// ErrRuns means that another process serves this state directory.
var ErrRuns = errors.New("a gateway serves this state directory already")

// Socket is where a gateway's own user reaches it, in the state directory.
const Socket = "gateway.sock"

// SocketPath is where this installation's gateway is reached.
func SocketPath(s *provide.Settings) string { return filepath.Join(s.Paths.AtollState, Socket) }

// Gateway is the long-running service: sessions, runs and everything about them,
// over WebSocket and HTTP. Serve closes it; that comes before the installation.
type Gateway struct {
	parts    *Parts
	config   config.Gateway
	grace    time.Duration
	idle     time.Duration
	private  bool
	logger   *slog.Logger
	lock     *filelock.Lock
	access   *access.Access
	worker   *Worker
	sessions *session.Service
	runs     *execute.Runs
	made     *sandboxes.Service
	pools    *pools.Service
	browsers *browsers.Service
	health   *health.Checker
	ws       *ws.Server
	rest     *rest.Server
	live     atomic.Pointer[live.Handler] // nil until it is opened
	all      *sandbox.Listing
	mcp      *mcp.Handler
	e2b      *e2b.Server
	ports    *portproxy.Proxy
	server   *gateway.Server
	inbound  *membudget.Budget
	tracer   *tracing.Tracer // nil if no collector is configured
	work     sync.WaitGroup
	closers  []func() // what was opened, in order
}

// Open opens everything that the gateway is made of and listens. It
// serves no request before Serve.
func Open(ctx context.Context, p *Parts, o Options) (*Gateway, error) {
	cfg, err := p.Config.Gateway()
	if err != nil {
		return nil, err
	}
	if len(o.Listen) == 0 && !o.Private {
		o.Listen = []string{cfg.Address()}
	}
	if o.Grace <= 0 {
		o.Grace = Grace
	}
	if err := gateway.Check(gateway.Options{Listen: o.Listen, TLS: certificate(&cfg), Trusted: cfg.TrustedNetwork}); err != nil {
		return nil, err
	}
	g := &Gateway{parts: p, config: cfg, grace: o.Grace, idle: o.Idle, private: o.Private, logger: p.Logger}
	if err := g.open(ctx, o.Listen); err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}

// open makes the parts, each from those before it.
func (g *Gateway) open(ctx context.Context, listen []string) error {
	for _, part := range []func(context.Context) error{g.openLock, g.openAccess, g.openTracing, g.openWork, g.openSandboxes, g.openPools, g.openBrowsers, g.openProtocols, g.openE2B} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return g.listen(ctx, listen)
}

// openLock makes sure that there is one gateway to a state directory: it owns what
// is in there.
func (g *Gateway) openLock(ctx context.Context) (err error) {
	g.lock, err = g.parts.Locks.TryHold(provide.GatewayLock)
	if errors.Is(err, filelock.ErrHeld) {
		return errhint.With(fmt.Errorf("%w: %s", ErrRuns, g.parts.Paths.AtollState), "stop the other one, or set another ATOLL_STATE_DIR")
	}
	if err != nil {
		return err
	}
	g.onClose(g.lock.Release)
	return g.parts.Own(ctx)
}

// openWork makes what carries out tasks and runs, and ends or resumes what a
// process that died left of them.
func (g *Gateway) openWork(ctx context.Context) (err error) {
	if g.worker, err = NewWorker(ctx, g.parts); err != nil && g.private {
		g.logger.WarnContext(ctx, "models cannot be asked", "error", err)
		g.worker, err = newWorkerWithoutModels(ctx, g.parts)
	}
	if err != nil {
		return err
	}
	g.worker.tracer = g.tracer
	g.onClose(func() { g.logError("model calls", g.worker.Close()) })
	g.all = sandbox.NewListing(g.parts.Manager)
	monitor.Sandboxes(g.parts.Manager, g.all, g.parts.Models.Metrics(), g.logger, g.tracer)
	g.tellSandboxes()
	options := SessionOptions(g.parts, g.worker)
	tasks := g.parts.Models.Metrics().Counter("atoll_tasks_total", "Tasks of sessions that are over, by state: done, failed or aborted.", "state")
	options.OnEnd = func(r *session.Record) { tasks.With(string(r.State)).Inc() }
	g.parts.RefusedAccounts = g.parts.Models.Metrics().Counter("atoll_gateway_accounts_refused_total", "Sandboxes refused because there is no image for a further account.")
	g.sessions = session.New(options)
	g.onClose(g.sessions.Close)
	g.parts.ShareAmong(g.severalAccounts())
	g.parts.LogRoots(ctx)
	if g.runs, err = g.parts.Runs.Open(execute.Options{Models: g.worker.Models()}); err != nil {
		return err
	}
	g.onClose(func() { g.logError("runs", g.runs.Close()) })
	for _, receipt := range g.runs.RecoverRuns(ctx) {
		g.logger.InfoContext(ctx, "a run of a dead process was ended", "run", receipt.ID, "step", receipt.Step)
	}
	g.watchUnfinished(ctx)
	g.inBackground(ctx, g.pruneUntil)
	if _, err := g.parts.Commits.Resume(ctx); err != nil {
		g.logger.WarnContext(ctx, "commits that a dead process left", "error", err)
	}
	return g.sessions.Recover(ctx)
}

// openSandboxes makes what keeps the sandboxes that programs made.
func (g *Gateway) openSandboxes(ctx context.Context) (err error) {
	if g.made, err = OpenSandboxes(ctx, g.parts); err != nil {
		return err
	}
	g.onClose(g.made.Close)
	return nil
}

// openPools begins to keep sandboxes ready before anybody asks for them.
func (g *Gateway) openPools(ctx context.Context) error {
	log, err := g.parts.Models.AuditLog()
	if err != nil {
		return err
	}
	g.pools, err = pools.Open(ctx, pools.Options{
		In: g.parts.Installation, Sizes: poolkeys.Sizes(g.parts.Config.Pools()), Logger: g.logger, Counted: pools.NewCounters(g.parts.Models.Metrics()),
		Audit: func(e *audit.PoolEvent) error { return log.Append(e) },
	})
	if err == nil {
		g.onClose(g.pools.Close)
	}
	return err
}

// OpenSandboxes returns what keeps the sandboxes that programs made. Close it before
// the installation.
func OpenSandboxes(ctx context.Context, p *Parts) (*sandboxes.Service, error) {
	log, err := p.Models.AuditLog()
	if err != nil {
		return nil, err
	}
	return sandboxes.Open(ctx, sandboxes.Options{In: p.Installation, Egress: p.Egress, Logger: p.Logger, Audit: func(e *audit.ExecEvent) error { return log.Append(e) }})
}

// openProtocols makes both languages of the service.
func (g *Gateway) openProtocols(context.Context) error {
	g.health = health.New(
		health.Check{Name: "store", Run: g.canWrite},
		health.Check{Name: "disk", Run: func(context.Context) error { return g.parts.Runs.RefuseFullDisk() }},
		health.Check{Name: "tasks", Run: g.tasksAreSaved},
		health.Check{Name: "engine", Run: g.parts.Doctor.EnginesAnswer},
	)
	g.inbound = membudget.New(g.config.Limits.Inbound, g.config.Limits.InboundPerToken)
	about := version.Current().Version
	catalogue := &gatewayCatalogue{parts: g.parts, models: &g.worker.Models().Config}
	g.ws = ws.New(ws.Options{
		Sessions: g.sessions, Access: g.access, Catalogue: catalogue, Healthy: g.health.Err, Version: about,
		Origins: g.config.Origins, Metrics: g.parts.Models.Metrics(), Logger: g.logger, Inbound: g.inbound,
	})
	g.onClose(g.ws.Close)
	g.parts.Sync.OnChange = func(c overlays.Change) {
		g.ws.SyncChanged(c.Account, ws.SyncChange{Agent: c.Agent, Session: c.Session, Verb: c.Verb, Files: c.Files})
	}
	options := RESTOptions(g.parts, g.runs)
	options.Identify, options.Limits, options.Sessions, options.Ready = g.access.Identify, g.access.Limiter, g.sessions, g.health.Err
	options.Inbound, options.Made, options.Tracer, options.Tokens, options.Devices = g.inbound, g.made, g.tracer, g.access.Tokens, g.access.Devices
	options.Browsers, options.Address, options.Socket = g.browsers, g.address, SocketPath(g.parts.Settings)
	options.TraceLink = g.config.TraceLink
	options.Settings, options.Pools = restSettings{g.parts, g.accounts}, g.pools
	options.Usage, options.Changed = monitor.NewSampler(g.parts.Manager, g.all).Usage, g.changed
	options.Sandboxes = restSandboxes{g.parts, g.all}
	if g.config.Dashboard {
		options.Web, options.PageURL = g.access, g.pageURL
	}
	g.rest = rest.New(options)
	g.onClose(g.rest.Close)
	g.openLive()
	g.mcp = mcp.NewHandler(g.logger)
	g.onClose(g.mcp.Close)
	g.count()
	return nil
}

// listen listens.
func (g *Gateway) listen(ctx context.Context, listen []string) (err error) {
	if err := g.checkListen(ctx, listen); err != nil {
		return err
	}
	pages, err := g.pages(&e2bRoute{g.e2b, &mcpRoute{g, g.mcp, g.rest}})
	if err != nil {
		return err
	}
	g.server, err = gateway.Open(ctx, gateway.Options{
		Listen: listen, Socket: SocketPath(g.parts.Settings), TLS: certificate(&g.config), Trusted: g.config.TrustedNetwork,
		Origins: g.config.Origins, Hosts: g.config.Hosts, REST: pages, Logger: g.logger,
		Access: g.access, Ports: g.ports,
		Upgrades: append(g.browserRoutes(), []gateway.Route{
			{Path: ws.Path, Handler: g.ws}, {Path: live.Path, Handler: g.live.Load()}, {Path: terminal.Path, Scope: access.Run, Handler: &terminal.Handler{Made: g.made, Origins: g.config.Origins}},
			{Path: e2b.Path, Handler: g.e2b}, {Path: e2b.Path + "/{path...}", Handler: g.e2b}, // to ports of sandboxes, which have tokens
		}...),
		Limits: gateway.Limits{Connections: g.config.Limits.Connections, PerAddress: g.config.Limits.PerAddress},
	})
	if err != nil {
		return err
	}
	g.onClose(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closePatience)
		defer cancel()
		g.logError("connections", g.server.Close(ctx))
	})
	return nil
}

// closePatience is how long answers under way have at the very end.
const closePatience = 5 * time.Second

func certificate(c *config.Gateway) gateway.Certificate {
	return gateway.Certificate{CertFile: c.TLS.CertFile, KeyFile: c.TLS.KeyFile}
}

// Serve serves until the context ends, then lets what is under way finish.
func (g *Gateway) Serve(ctx context.Context) error {
	defer g.close()
	g.settleCalls(ctx)
	g.server.Start()
	g.logger.InfoContext(ctx, "gateway serves", "addresses", g.Addresses(), "version", version.Current().Version)
	var err error
	select {
	case err = <-g.server.Failed():
	case <-g.unused(ctx):
		g.logger.InfoContext(ctx, "gateway ends: nobody uses it", "idle", g.idle.String())
	case <-ctx.Done():
	}
	g.drain(context.WithoutCancel(ctx))
	return err
}

// settleCalls settles calls of models while the gateway serves.
func (g *Gateway) settleCalls(ctx context.Context) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() { defer close(done); g.parts.Models.SettleCalls(ctx) }()
	g.onClose(func() { cancel(); <-done })
}

// drain takes nothing new and gives what is under way its time. Clients are told
// first, so that they know why what they ask for next is refused.
func (g *Gateway) drain(ctx context.Context) {
	g.logger.InfoContext(ctx, "gateway drains", "grace", g.grace.String(), "tasks", g.sessions.Stats().Running)
	g.health.Drain()
	g.server.Drain()
	g.ws.Announce("gateway stopping")
	within, cancel := context.WithTimeout(ctx, g.grace)
	defer cancel()
	var both sync.WaitGroup
	both.Go(func() { g.logError("tasks that did not finish in time", g.sessions.Drain(within)) })
	both.Go(func() { g.rest.Drain(within) })
	both.Wait()
	g.mcp.Close()
	parting, cancel := context.WithTimeout(ctx, closePatience)
	defer cancel()
	g.ws.Shutdown(parting)
}

// close ends the parts, the last one made first.
func (g *Gateway) close() {
	for len(g.closers) > 0 {
		last := len(g.closers) - 1
		g.closers[last]()
		g.closers = g.closers[:last]
	}
}

func (g *Gateway) onClose(f func()) { g.closers = append(g.closers, f) }

func (g *Gateway) logError(what string, err error) {
	if err != nil {
		g.logger.Error(what, "error", err)
	}
}

// Addresses are where the gateway listens.
func (g *Gateway) Addresses() []string { return g.server.Addresses() }

// canWrite reports whether the database takes what is written to it.
func (g *Gateway) canWrite(ctx context.Context) error {
	return g.parts.Registry.SetFact(ctx, "gateway.health", time.Now().UTC().Format(time.RFC3339))
}

// tasksAreSaved returns an error while the state of tasks cannot be written.
func (g *Gateway) tasksAreSaved(context.Context) error {
	if n := g.sessions.Stats().Unsaved; n > 0 {
		return fmt.Errorf("the state of %d tasks cannot be written to the database; it is tried again", n)
	}
	return nil
}

// count lets Prometheus see how much is going on.
func (g *Gateway) count() {
	r := g.parts.Models.Metrics()
	r.Gauge("atoll_gateway_connections", "Connections that are open.", func() float64 { return float64(g.server.Connections()) })
	r.Gauge("atoll_gateway_clients", "WebSocket clients that said hello.", func() float64 { return float64(g.ws.Connections()) })
	r.Gauge("atoll_gateway_tasks_running", "Tasks of sessions under way.", func() float64 { return float64(g.sessions.Stats().Running) })
	r.Gauge("atoll_gateway_tasks_waiting", "Tasks of sessions that wait.", func() float64 { return float64(g.sessions.Stats().Waiting) })
	r.Gauge("atoll_gateway_tasks_unsaved", "Tasks of sessions whose state cannot be written now.", func() float64 { return float64(g.sessions.Stats().Unsaved) })
	r.Gauge("atoll_gateway_inbound_bytes", "Memory of requests and messages that are arriving.", func() float64 { return float64(g.inbound.Used()) })
	r.Gauge("atoll_gateway_ready", "1 while the gateway can work, else 0: what /ready says.", g.isReady)
	r.Gauges("atoll_approvals_open", "Questions that wait for a person, by topic; at most 1000 are counted.", []string{"topic"}, g.countApprovals)
	r.Gauge("atoll_run_queue_waiting", "Runs that wait because as many as allowed are under way.", func() float64 { return float64(g.runs.Waiting()) })
	r.Gauge("atoll_state_free_bytes", "Free space on the disk of the state directory.", g.freeSpace)
	monitor.Process(r, g.logger)
}

// isReady is the answer of /ready as a number.
func (g *Gateway) isReady() float64 {
	if g.health.Err(context.Background()) != nil {
		return 0
	}
	return 1
}

// countApprovals counts open questions.
func (g *Gateway) countApprovals(set func(float64, ...string)) {
	ctx, cancel := context.WithTimeout(context.Background(), closePatience)
	defer cancel()
	open, err := g.parts.Commits.Approvals().List(ctx, approval.Filter{Open: true})
	if err != nil {
		return
	}
	for i := range open {
		set(1, open[i].Kind)
	}
}

// freeSpace returns what is free on the disk of the state directory.
func (g *Gateway) freeSpace() float64 {
	free, err := g.parts.FreeBytes()
	if err != nil {
		return math.NaN()
	}
	return float64(free)
}

// severalAccounts reports whether tenants share this gateway: by the tokens there
// are, and by who has used it. The answer holds for a moment.
func (g *Gateway) severalAccounts() func() bool {
	var mu sync.Mutex
	var at time.Time
	var several bool
	return func() bool {
		mu.Lock()
		defer mu.Unlock()
		if several || time.Since(at) < time.Second {
			return several // what was used by several stays so until a restart
		}
		ctx, cancel := context.WithTimeout(context.Background(), closePatience)
		defer cancel()
		all, err := g.accounts(ctx)
		if err != nil {
			g.logError("accounts", err)
			return true
		}
		several, at = len(all) > 1, time.Now()
		return several
	}
}

// accounts are those that tokens speak for or that something was done for; who
// has none is the owner.
func (g *Gateway) accounts(ctx context.Context) (map[string]bool, error) {
	all := map[string]bool{}
	for _, ask := range []func(context.Context) ([]string, error){g.access.Tokens.Accounts, g.sessions.Accounts, g.parts.Models.RunStore().Accounts} {
		some, err := ask(ctx)
		if err != nil {
			return nil, err
		}
		for _, account := range some {
			if strings.TrimSpace(account) != "" {
				all[account] = true
			}
		}
	}
	return all, nil
}
