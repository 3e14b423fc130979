package serve

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/agent"
	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/agent/host"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/gateway/serve/cpusemaphore"
	"github.com/atoll-run/atoll/internal/gateway/session"
	"github.com/atoll-run/atoll/internal/logid"
	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/model/service"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/relay/deliver"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/tracing"
)

// Worker carries out the tasks of sessions, many at once, through one proxy.
type Worker struct {
	parts  *Parts
	models *service.Proxy
	cpu    cpusemaphore.Semaphore
	tracer *tracing.Tracer // nil traces nothing
}

var _ session.Worker = (*Worker)(nil)

// NewWorker opens the proxy of all sessions. Close it before the installation.
func NewWorker(ctx context.Context, p *Parts) (*Worker, error) {
	models, err := p.Models.OpenConfigured(ctx)
	if err != nil {
		return nil, err
	}
	return &Worker{parts: p, models: models, cpu: cpusemaphore.New()}, nil
}

// newWorkerWithoutModels is NewWorker with no provider of models: whoever asks one is
// told so.
func newWorkerWithoutModels(ctx context.Context, p *Parts) (*Worker, error) {
	cfg, err := p.Config.LLM()
	if err != nil {
		return nil, err
	}
	cfg.Providers, cfg.Embeddings, cfg.Model = nil, "", ""
	models, err := p.Models.OpenProxyWith(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &Worker{parts: p, models: models, cpu: cpusemaphore.New()}, nil
}

// Close ends every call of a model.
func (g *Worker) Close() error { return g.models.Close() }

// Models is the proxy that sessions ask through.
func (g *Worker) Models() *service.Proxy { return g.models }

// SessionOptions are those of a service whose tasks a worker carries out.
func SessionOptions(p *Parts, w session.Worker) session.Options {
	settings := p.Config.Session()
	return session.Options{
		DB: p.DB, Worker: w, Agents: p.Config.Agents, Logger: p.Logger, Attachments: host.Spool(p.Settings),
		Names: policy.Sessions{DefaultAgent: p.Config.DefaultAgent(), MainKey: settings.MainKey, Global: settings.Scope == "global"},
	}
}

// TaskRun is the id of a task in receipts and bills. Accounts choose the ids of
// their tasks themselves, so those alone would not tell them apart.
func TaskRun(account, task string) string {
	sum := sha256.Sum256([]byte(account + "\x00" + task))
	return "task-" + hex.EncodeToString(sum[:16])
}

// Work implements session.Worker. To begin and to end a task takes a turn; to talk
// with a model, which is mostly waiting, takes none.
func (g *Worker) Work(ctx context.Context, job *session.Job, tell func(session.Event)) (*session.Outcome, error) {
	run := cmp.Or(job.Terms.Run, TaskRun(job.Account, job.ID))
	span := g.beginTask(job, run)
	outcome, err := g.work(logid.With(logid.With(ctx, "task", job.ID), "run", run), job, func(e session.Event) { g.traceTool(run, &e); tell(e) })
	span.End(failureCode(err), nil)
	return outcome, err
}

// failureCode returns the code of a task's error; "" if there is none.
func failureCode(err error) string {
	if failure, ok := errors.AsType[*session.Failure](err); ok {
		return failure.Code
	}
	return tracing.Code(err, "failed")
}

func (g *Worker) work(ctx context.Context, job *session.Job, tell func(session.Event)) (*session.Outcome, error) {
	w, err := g.begin(ctx, job, tell)
	if err != nil {
		return nil, notStarted(err)
	}
	tell(session.Event{Kind: session.Prepared, Location: w.Place()})
	out, failure := w.Agent.Run(ctx, w.Message(job.Message))
	outcome, err := g.end(context.WithoutCancel(ctx), w, out, failure)
	if err != nil {
		g.parts.Logger.ErrorContext(ctx, "the end of a task", "run", w.Run, "error", err)
	}
	return outcome, coded(failure)
}

// begin makes an agent ready.
func (g *Worker) begin(ctx context.Context, job *session.Job, tell func(session.Event)) (*host.Worker, error) {
	leave, err := g.cpu.Enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return g.parts.Agents.NewWorker(ctx, g.options(job, tell))
}

// end writes down what an agent did, and gives back what it worked with.
func (g *Worker) end(ctx context.Context, w *host.Worker, out *agent.Outcome, failure error) (*session.Outcome, error) {
	if leave, err := g.cpu.Enter(ctx); err == nil { // this context is not cancelled
		defer leave()
	}
	spent, err := w.Spent(ctx)
	delivery, undelivered := w.Deliver(ctx, out, failure)
	err = errors.Join(err, w.KeepWithin(ctx, out, failure, 0), w.Close()) // the provider's figures come with the next look
	report := w.Report(out, spent, delivery, undelivered)
	return &session.Outcome{Text: out.Text, Model: out.Model, Usage: out.Usage, MicroUSD: spent.MicroUSD, Report: report}, err
}

// options are those of the agent that does a job.
func (g *Worker) options(job *session.Job, tell func(session.Event)) host.Options {
	terms := &job.Terms
	headers, known := knownAs(job)
	return host.Options{
		KnownAs: known,
		Who:     provide.Subject{AgentID: job.Agent, SessionKey: job.Key, Account: payer(job.Account, job.Headers), MostSandboxes: job.Quota.Sandboxes},
		Model:   cmp.Or(terms.Model, job.Model), SessionID: cmp.Or(terms.Transcript, job.Session), Run: cmp.Or(terms.Run, TaskRun(job.Account, job.ID)),
		System: job.System, Headers: headers, Models: g.models, Branch: terms.Branch, HostTools: terms.HostTools,
		Limits:   agent.Limits{Time: job.Timeout, Turns: terms.Turns, Tokens: terms.Tokens},
		Budget:   grant.Budget{MicroUSD: terms.MicroUSD, Day: job.Quota.MicroUSD},
		Watch:    func(e agent.Event) { tell(sessionEvent(&e)) },
		Thinking: chat.Level(job.Levels[session.ThinkingLevel]), Trace: job.Trace, Attachments: host.Attachments{Files: job.Files, Sources: job.Sources},
	}
}

// knownAs is the id that a task's caller knows it by: the one that its headers name,
// else the task's own. It goes with the calls of models.
func knownAs(job *session.Job) (headers map[string]string, known string) {
	known = cmp.Or(job.Headers[grant.RunHeader], job.ID)
	if job.Terms.Run != "" || !grant.IsHeaderID(known) {
		return job.Headers, ""
	}
	if headers = maps.Clone(job.Headers); headers == nil {
		headers = map[string]string{}
	}
	headers[grant.RunHeader] = known
	return headers, known
}

// payer is the account that a session's sandbox, transcript and calls belong to.
// Only a session that has none may name it in its headers.
func payer(account string, headers map[string]string) string {
	return cmp.Or(account, headers[grant.EndUserHeader])
}

// coded gives an error its code.
func coded(err error) error {
	if err == nil {
		return nil
	}
	return &session.Failure{Code: agent.CodeOf(err), Err: err}
}

// notStarted gives what kept an agent from starting its code.
func notStarted(err error) error {
	code := session.CodeNotStarted
	own, isOwn := errors.AsType[*agent.Error](err)
	_, isConfig := errors.AsType[config.Problems](err)
	_, isBox := errors.AsType[*sandbox.ProvisionError](err)
	switch {
	case isOwn:
		code = own.Code
	case errors.Is(err, deliver.ErrNoRelay) || isConfig:
		code = "usage"
	case errors.Is(err, provide.ErrQuota):
		code = "quota_exceeded"
	case errors.Is(err, service.ErrNoModel):
		code = "no_model"
	case errors.Is(err, sandbox.ErrDenied):
		code = "denied"
	case isBox:
		code = "sandbox_unavailable"
	}
	return &session.Failure{Code: code, Err: err}
}

// sessionEvent is an event of an agent as sessions tell it; of no kind if they do not.
func sessionEvent(e *agent.Event) session.Event {
	switch e.Type {
	case agent.TextDelta:
		return session.Event{Kind: session.Said, Delta: e.Text, Model: e.Model}
	case agent.ToolCall:
		return session.Event{Kind: session.Called, Call: e.Call}
	case agent.ToolResult:
		return session.Event{Kind: session.Returned, Call: e.Call, Result: e.Text, IsError: e.IsError, TookMs: e.TookMs}
	case agent.UsageReport:
		return session.Event{Kind: session.Used, Usage: e.Usage, Model: e.Model}
	case agent.Notice:
		return session.Event{Kind: session.Noticed, Notice: e.Text}
	}
	return session.Event{}
}

// Resolve implements session.Worker. A name without a provider is that of the
// only provider that has it.
func (g *Worker) Resolve(agentID, model string) (string, error) {
	of, err := g.parts.Config.Resolve(agentID)
	if err != nil {
		return "", err
	}
	name, err := g.catalogued(model)
	if err != nil {
		return "", err
	}
	_, id, _ := strings.Cut(name, "/")
	if !service.Fits(service.AllowedModels(&of.LLM), id) {
		return "", errhint.With(fmt.Errorf("model not allowed: %s", model), "see agents.…llm.models in the configuration")
	}
	return name, nil
}

// catalogued finds a model in the catalogue.
func (g *Worker) catalogued(model string) (string, error) {
	provider, id, named := strings.Cut(model, "/")
	var found, open []string
	for i := range g.models.Config.Providers {
		p := &g.models.Config.Providers[i]
		switch {
		case named && p.Name == provider && hasModel(p, id):
			return model, nil
		case len(p.Models) > 0 && service.Fits(p.Models, model):
			found = append(found, p.Name+"/"+model)
		case len(p.Models) == 0 && !named:
			open = append(open, p.Name+"/"+model) // it alone knows what it has
		}
	}
	if len(found) == 0 {
		found = open
	}
	if len(found) == 1 {
		return found[0], nil
	}
	slices.Sort(found)
	hint := "write PROVIDER/NAME of the configuration's llm.providers or models.providers"
	if len(found) > 1 {
		hint = fmt.Sprintf("choose one of %q", found)
	}
	return "", errhint.With(fmt.Errorf("model not found: %s", model), hint)
}

func hasModel(p *config.LLMProvider, id string) bool {
	return id != "" && (len(p.Models) == 0 || service.Fits(p.Models, id))
}

// History implements session.Worker.
func (g *Worker) History(_ context.Context, e *session.Entry, most int) ([]chat.Message, error) {
	path, err := g.transcript(e)
	if err != nil {
		return nil, err
	}
	messages, err := agent.ReadTranscript(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return messages[max(0, len(messages)-most):], err
}

// Forget implements session.Worker.
func (g *Worker) Forget(_ context.Context, e *session.Entry) error {
	return g.alone(e, func(path string) error {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}

// Compact implements session.Worker.
func (g *Worker) Compact(_ context.Context, e *session.Entry) (before, after int, err error) {
	err = g.alone(e, func(path string) (err error) {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		t, err := agent.OpenTranscript(path, e.ID)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, t.Close()) }()
		before, after, err = t.Compact()
		return err
	})
	return before, after, err
}

// transcript is where a session's conversation is.
func (g *Worker) transcript(e *session.Entry) (string, error) {
	return agent.Sessions{Dir: g.parts.Agents.SessionsDir(e.Agent, payer(e.Account, e.Headers))}.File(e.ID)
}

// alone calls do with the path of a transcript, while it holds the transcript's lock.
func (g *Worker) alone(e *session.Entry, do func(path string) error) error {
	path, err := g.transcript(e)
	if err != nil {
		return err
	}
	lock, err := g.parts.Locks.TryHold(host.TranscriptLock(path))
	if errors.Is(err, filelock.ErrHeld) {
		return fmt.Errorf("%w: the conversation is in use by another process", session.ErrBusy)
	}
	if err != nil {
		return err
	}
	defer lock.Release()
	return do(path)
}
