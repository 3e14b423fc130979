package serve

import (
	"cmp"
	"context"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/approval"
	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/gateway/rest"
	"github.com/atoll-run/atoll/internal/gateway/session"
	"github.com/atoll-run/atoll/internal/model/service"
	"github.com/atoll-run/atoll/internal/model/usage"
	"github.com/atoll-run/atoll/internal/relay/deliver"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/run/execute"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/version"
)

// RESTOptions are what the gateway's HTTP interface works with. Who may call, which
// sessions there are and what makes it ready is the gateway's to add.
func RESTOptions(p *Parts, r *execute.Runs) rest.Options {
	return rest.Options{
		Runs: restRuns{p, r}, Store: p.Models.RunStore(), Agents: []rest.Catalogue{restVariants{p, r.Variants}}, Sandboxes: restSandboxes{p, sandbox.NewListing(p.Manager)}, Ledger: restBooks{p}, Choices: restChoices{p, r.Variants}, Examine: examine(p.Doctor),
		Relay: restRelay{p}, AgentNames: p.Config.Agents(), Settings: restSettings{p, func(context.Context) (map[string]bool, error) { return nil, nil }},
		Approvals: restApprovals{p.Commits.Approvals(), p.Commits}, Sync: p.Sync,
		Version: version.Current().Version, Metrics: p.Models.Metrics(), Logger: p.Logger,
	}
}

// restRuns carries out what callers ask for.
type restRuns struct {
	parts *Parts
	runs  *execute.Runs
}

// billPatience is how long a look at a bill waits for the provider's books.
const billPatience = 3 * time.Second

// Begin accepts a task.
func (r restRuns) Begin(ctx context.Context, t *rest.Task) (*run.AcceptedRun, error) {
	request, err := r.runs.Request(ctx, &execute.Task{
		ID: t.ID, Variant: t.GraphID, AgentID: t.Agent, Account: t.Account, Trace: t.Trace, Model: t.Model,
		Messages: t.Messages, Budget: t.Budget, Timeout: t.Timeout, Memory: t.Memory, Branch: t.Branch,
	})
	if err != nil {
		return nil, err
	}
	return r.runs.Accept(ctx, request)
}

// Resume brings a run to its end whose steps could not be recorded.
func (r restRuns) Resume(ctx context.Context, id string) error { return r.runs.Resume(ctx, id) }

// Limit bounds what a run takes.
func (r restRuns) Limit(id string, q session.Quota) (forget func()) {
	return r.parts.Runs.LimitRun(id, q)
}

// Bill asks again what a run has cost.
func (r restRuns) Bill(ctx context.Context, id string) (run.Bill, error) {
	return r.parts.Models.RunBill(ctx, id, billPatience)
}

// restVariants is the registry of variants as a catalogue.
type restVariants struct {
	parts    *Parts
	variants []run.Variant
}

// Agents lists them, and says which of them cannot work.
func (r restVariants) Agents(ctx context.Context) ([]api.Agent, error) {
	list := make([]api.Agent, 0, len(r.variants))
	for i := range r.variants {
		v := &r.variants[i]
		list = append(list, api.Agent{GraphID: v.ID, Name: cmp.Or(v.Name, v.ID), Description: v.Description, Unavailable: r.parts.Runs.WhyUnavailable(ctx, v)})
	}
	return list, nil
}

// restApprovals is the queue of questions; answers are followed by what they decide.
type restApprovals struct {
	*approval.Queue
	commits *deliver.Deliverer
}

// Answer answers a question, and pushes the commits that it was about.
func (r restApprovals) Answer(ctx context.Context, id string, reply approval.Reply) (*approval.Question, string, error) {
	return r.commits.AnswerApproval(ctx, id, reply)
}

// restBooks is the ledger and the audit log.
type restBooks struct{ parts *Parts }

// Costs returns what runs have spent.
func (b restBooks) Costs(ctx context.Context, f usage.Filter) ([]usage.RunCost, error) {
	return b.parts.Models.RunCosts(ctx, f)
}

// Calls returns the calls of a run.
func (b restBooks) Calls(ctx context.Context, f usage.Filter) ([]usage.Stored, error) {
	ledger, err := b.parts.Models.Ledger(ctx)
	if err != nil {
		return nil, err
	}
	return ledger.Calls(ctx, f)
}

// Series returns what was spent over time.
func (b restBooks) Series(ctx context.Context, f usage.Filter, by string, bucket time.Duration) ([]usage.Point, error) {
	ledger, err := b.parts.Models.Ledger(ctx)
	if err != nil {
		return nil, err
	}
	return ledger.Series(ctx, f, by, bucket)
}

// VerifyAudit reads the whole audit log.
func (b restBooks) VerifyAudit(context.Context) (*audit.Report, error) {
	return audit.Verify(service.AuditDir(b.parts.Settings), audit.VerifyOptions{})
}

// AuditTail returns the last records that match.
func (b restBooks) AuditTail(most int, match func(string) bool) ([]audit.Entry, error) {
	return audit.Tail(service.AuditDir(b.parts.Settings), most, match)
}
