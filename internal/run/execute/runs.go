// Package execute carries out runs: each in a sandbox of its own, or at a gateway
// of OpenClaw, with models, files, volumes and a branch for its commits.
package execute

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/config"
	egress "github.com/atoll-run/atoll/internal/egress/service"
	"github.com/atoll-run/atoll/internal/gate/overlays"
	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/model/service"
	"github.com/atoll-run/atoll/internal/relay/deliver"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/sandbox/directory"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// Executor carries out the runs of an installation.
type Executor struct {
	*provide.Installation
	models  *service.Service
	commits *deliver.Deliverer
	egress  *egress.Service
	sync    *overlays.Service
	limits  runLimits
}

// New returns what carries out the runs of an installation.
func New(models *service.Service, commits *deliver.Deliverer, names *egress.Service, sync *overlays.Service) *Executor {
	return &Executor{Installation: models.Installation, models: models, commits: commits, egress: names, sync: sync}
}

// Options are what runs are carried out with.
type Options struct {
	AtOnce    int // runs of this process at the same time; 0 is the default
	Finishers []run.Finisher
	// Variants are more agents than those of the configuration.
	Variants []run.Variant
	// Models is the proxy that the process has already; nil is one of the runs' own.
	Models *service.Proxy
	// Checkpoint is run.Options.Checkpoint.
	Checkpoint func(run.Step)
	// Demo has the scripted model answer.
	Demo bool
	// Program is our own program, for the sandboxes that run it; "" is the one
	// that is running.
	Program string
}

// Runs carries out tasks, each in a sandbox of its own. Close it before the App.
type Runs struct {
	*run.Runner
	executor *Executor
	drive    *openclawGateway
	demo     bool

	mu     sync.Mutex
	models *service.Proxy // opened by the first run
	shared bool           // the proxy is closed by its owner
}

// Open opens the runs of this installation.
func (e *Executor) Open(o Options) (*Runs, error) {
	cfg, err := e.Config.Runs()
	if err != nil {
		return nil, err
	}
	drive := &openclawGateway{executor: e, config: cfg.OpenClaw.Gateway}
	variants, err := e.variants(&cfg, o.Program, drive)
	if err != nil {
		return nil, err
	}
	variants = append(variants, o.Variants...)
	r := &Runs{executor: e, drive: drive, demo: o.Demo, models: o.Models, shared: o.Models != nil}
	r.Runner = run.New(run.Options{
		Store: e.models.RunStore(), Locks: e.Locks, Variants: variants, Sandboxes: r, Biller: r,
		Finishers: append([]run.Finisher{relayFinisher{r}}, o.Finishers...), AtOnce: cmp.Or(o.AtOnce, cfg.Concurrency), Checkpoint: o.Checkpoint,
		LockBranch: r.lockBranch,
	})
	return r, nil
}

// Close ends every model call of this process's runs.
func (r *Runs) Close() error {
	r.drive.close()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.models == nil || r.shared {
		return nil
	}
	models := r.models
	r.models = nil
	return models.Close()
}

// RecoverRuns ends what dead processes left of their runs. What cannot be ended
// now is tried again by the next process: it is no reason not to start.
func (r *Runs) RecoverRuns(ctx context.Context) []run.Receipt {
	ended, err := r.Recover(ctx)
	if err != nil {
		r.executor.Logger.WarnContext(ctx, "runs of dead processes", "error", err)
	}
	return ended
}

// Task is something for an agent to do, in a sandbox of its own.
type Task struct {
	ID       string // "" is a new one
	Variant  string
	AgentID  string
	Account  string
	Session  string
	Trace    string // that it belongs to, see package trace
	Model    string // provider/id; "" is the agent's own
	Messages []chat.Message
	Budget   grant.Budget
	Timeout  time.Duration
	Memory   int64
	Branch   string
	Checkout string // directory whose checkout the branch is of, where the configuration names no repository
	// Directory is the directory of the host that it works on, by an overlay of its own,
	// if its agent can; nil is a workspace of its own.
	Directory *directory.Directory
}

// NewRunID returns a new id.
func NewRunID() string { return "run-" + strings.ToLower(rand.Text()) }

// Do carries out a task, or returns what became of it if it was asked before.
func (r *Runs) Do(ctx context.Context, t *Task, watch func(run.Event)) (*run.Receipt, error) {
	request, err := r.Request(ctx, t)
	if err != nil {
		return nil, err
	}
	return r.Run(ctx, request, watch)
}

// Request settles who is asked what.
func (r *Runs) Request(ctx context.Context, t *Task) (*run.Request, error) {
	on := r.directoryOf(t)
	agent, err := r.executor.Config.Resolve(cmp.Or(t.AgentID, on.agent, r.executor.Config.DefaultAgent()))
	if err != nil {
		return nil, err
	}
	if t.Branch != "" { // before anything is made for it
		if _, _, err := r.executor.commits.ProjectOf(deliver.WorkOf{Account: t.Account, Agent: agent.ID, Checkout: t.Checkout}); err != nil {
			return nil, err
		}
	}
	model, embeds, err := r.model(ctx, agent, t.Model)
	if err != nil {
		return nil, err
	}
	return &run.Request{
		ID: cmp.Or(t.ID, NewRunID()), Variant: t.Variant, Account: t.Account, Agent: agent.ID, Session: t.Session, Trace: t.Trace,
		Model: model.ID, API: model.API, Window: model.Window, MaxTokens: model.MaxTokens, Embeddings: embeds.ID,
		Messages: t.Messages, Budget: t.Budget, Branch: t.Branch, Checkout: t.Checkout, Directory: on.path, Below: on.below, TimeoutMs: t.Timeout.Milliseconds(), Memory: t.Memory,
	}, nil
}

// model opens the proxy and finds the model that an agent is to ask, and the one
// that it may have its memories compared by.
func (r *Runs) model(ctx context.Context, agent *config.Agent, override string) (model, embeds service.Candidate, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	models, list, err := r.executor.models.ForAgent(ctx, agent, service.Choice{Model: override, Proxy: r.models, Demo: r.demo})
	if err != nil {
		return service.Candidate{}, service.Candidate{}, err
	}
	r.models = models
	embeds, _, err = r.executor.models.EmbeddingsModel(models, &agent.LLM)
	return list[0], embeds, err
}

// Scripted says, if no real model answers, that none does.
func (r *Runs) Scripted() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.models != nil && r.models.Scripted() {
		return service.ScriptedNotice
	}
	return ""
}

// proxy is what runs of this process ask models through.
func (r *Runs) proxy() (*service.Proxy, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.models == nil {
		return nil, errors.New("no model was opened for this run")
	}
	return r.models, nil
}

var (
	_ run.Sandboxes = (*Runs)(nil)
	_ run.Biller    = (*Runs)(nil)
)

// Settle finds what a run cost. Where LiteLLM was asked, its word is waited for a
// while; a bill without it is provisional.
func (r *Runs) Settle(ctx context.Context, id string) (run.Bill, error) {
	if models, err := r.proxy(); err == nil {
		if err := models.WaitIdle(ctx, id); err != nil {
			return run.Bill{}, err
		}
	}
	return r.executor.models.RunBill(ctx, id, service.SettlePatience)
}
