package backend

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/client"
	"github.com/atoll-run/atoll/internal/approval"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/contexts"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/gateway/serve"
	money "github.com/atoll-run/atoll/internal/model/usage"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/run/execute"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// Runs carries out the verbs about runs: the running gateway, which owns
// the state directory, or this process.
type Runs interface {
	List(ctx context.Context, f run.Filter) ([]run.Receipt, error)
	Show(ctx context.Context, id string) (*run.Receipt, error)
	// Events passes on the events after a sequence number; with follow it goes on
	// until the run is over.
	Events(ctx context.Context, id string, after int64, follow bool, tell func(*run.Event) error) error
	Costs(ctx context.Context, f money.Filter) ([]money.RunCost, error)
	Start(ctx context.Context, t *execute.Task, watch RunWatcher) (*run.Receipt, error)
}

// RunWatcher is called while a run is under way.
type RunWatcher struct {
	Event    func(run.Event)
	Scripted func(notice func() string) // notice says that the scripted model answers; not called by a gateway
}

// Sandboxes carries out the verbs about sandboxes.
type Sandboxes interface {
	Sandboxes(ctx context.Context, limit int) ([]provide.Listed, int, error)
	Choose(ctx context.Context, s provide.Selector) ([]*sandbox.Entry, error)
	Recreate(ctx context.Context, entry *sandbox.Entry, discard bool) provide.Recreated
	Prune(ctx context.Context, workspaces bool) (rows []Pruned, silent, err error)
}

// Approvals carries out the verbs about questions to a person.
type Approvals interface {
	Questions(ctx context.Context, f approval.Filter) ([]approval.Question, error)
	Question(ctx context.Context, id string) (*approval.Question, error)
	// Answer answers a question; the note says what became of what it was about.
	Answer(ctx context.Context, id string, r approval.Reply) (q *approval.Question, note string, err error)
}

// LocalFlag adds --local and --gateway.
func LocalFlag(cmd *cobra.Command, e *console.Env) {
	GatewayFlag(cmd, e)
	cmd.PersistentFlags().BoolVar(&e.Local, "local", false, "work in this process, even if a gateway is running")
}

// GatewayFlag adds --gateway.
func GatewayFlag(cmd *cobra.Command, e *console.Env) {
	cmd.PersistentFlags().StringVar(&e.Gateway, "gateway", "", "work with a gateway elsewhere: its `URL`, or the name of a context")
}

// OpenRuns returns the running gateway, or this process.
func OpenRuns(ctx context.Context, e *console.Env) (Runs, error) {
	if g, err := RunningGateway(ctx, e); g != nil || err != nil {
		return g, err
	}
	a, err := e.Open(ctx)
	return local{e, a}, err
}

// OpenRunsHere returns this process, also if a gateway is running: for runs on a
// directory of the caller's.
func OpenRunsHere(ctx context.Context, e *console.Env) (Runs, error) {
	a, err := e.Open(ctx)
	return local{e, a}, err
}

// OpenSandboxes returns the running gateway, or this process.
func OpenSandboxes(ctx context.Context, e *console.Env) (Sandboxes, error) {
	if g, err := RunningGateway(ctx, e); g != nil || err != nil {
		return g, err
	}
	a, err := e.Open(ctx)
	return local{e, a}, err
}

// OpenApprovals returns the running gateway, or this process.
func OpenApprovals(ctx context.Context, e *console.Env) (Approvals, error) {
	if g, err := RunningGateway(ctx, e); g != nil || err != nil {
		return g, err
	}
	a, err := e.Open(ctx)
	return local{e, a}, err
}

// RunningGateway returns the gateway that answers at the state directory's socket,
// nil if there is none.
func RunningGateway(ctx context.Context, e *console.Env) (*Gateway, error) {
	if e.Local {
		return nil, nil
	}
	settings, err := e.Load()
	if err != nil {
		return nil, err
	}
	if e.Gateway != "" {
		return elsewhere(ctx, e, settings)
	}
	socket := serve.SocketPath(settings)
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, nil //nolint:nilerr // no gateway is running
	}
	_ = conn.Close()
	c, err := client.New(client.Options{Socket: socket})
	if err != nil {
		return nil, err
	}
	return &Gateway{c, settings}, answers(ctx, c, socket)
}

// elsewhere returns the gateway that --gateway names.
func elsewhere(ctx context.Context, e *console.Env, settings *provide.Settings) (*Gateway, error) {
	state, err := e.StateDir()
	if err != nil {
		return nil, err
	}
	all, err := contexts.Load(state)
	if err != nil {
		return nil, err
	}
	to, err := all.Resolve(e.Gateway, e.Getenv)
	if err != nil {
		return nil, console.WithCode(console.ExitUsage, err)
	}
	c, err := client.New(client.Options{URL: to.URL, Token: to.Token})
	if err != nil {
		return nil, console.WithCode(console.ExitUsage, errhint.With(err, "give --gateway URL, such as https://atoll.example.org"))
	}
	return &Gateway{c, settings}, answers(ctx, c, to.URL)
}

// gatewayPatience is how long a gateway may take to answer a health request.
const gatewayPatience = 3 * time.Second

// answers returns an error if the gateway does not answer in time, so that no verb
// waits for ever.
func answers(ctx context.Context, c *client.Client, socket string) error {
	ctx, cancel := context.WithTimeout(ctx, gatewayPatience)
	defer cancel()
	_, err := c.Health(ctx)
	if _, isAnswer := errors.AsType[*api.Problem](err); err != nil && !isAnswer {
		if errors.Is(err, context.DeadlineExceeded) {
			err = context.DeadlineExceeded // without the address, which only looks like one
		}
		return errhint.With(fmt.Errorf("the gateway of %s does not answer within %s: %w", socket, gatewayPatience, err),
			"its process is stopped or overloaded: continue or end it; --local works without it")
	}
	return nil
}
