package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/client"
	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/errhint"
	money "github.com/atoll-run/atoll/internal/model/usage"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// runDesk is where verbs about runs have their work done: by a gateway that is
// running, which then owns the state directory, or by this process alone.
type runDesk interface {
	list(ctx context.Context, f run.Filter) ([]run.Receipt, error)
	show(ctx context.Context, id string) (*run.Receipt, error)
	// events tells those after a number; to follow is to go on until the end.
	events(ctx context.Context, id string, after int64, follow bool, tell func(*run.Event) error) error
	costs(ctx context.Context, f money.Filter) ([]money.RunCost, error)
	start(ctx context.Context, t *app.Task, view *runView) (*run.Receipt, error)
}

// boxDesk is the same for verbs about sandboxes.
type boxDesk interface {
	sandboxes(ctx context.Context, limit int) ([]app.Listed, int, error)
	choose(ctx context.Context, s app.Selector) ([]*sandbox.Entry, error)
	recreate(ctx context.Context, entry *sandbox.Entry, discard bool) app.Recreated
	prune(ctx context.Context, workspaces bool) (rows []pruned, silent, err error)
}

// localFlag adds --local.
func localFlag(cmd *cobra.Command, e *env) {
	cmd.PersistentFlags().BoolVar(&e.local, "local", false, "work in this process, even if a gateway is running")
}

func (e *env) runDesk(ctx context.Context) (runDesk, error) {
	if g, err := e.gateway(ctx); g != nil || err != nil {
		return g, err
	}
	a, err := e.open(ctx)
	return alone{e, a}, err
}

func (e *env) boxDesk(ctx context.Context) (boxDesk, error) {
	if g, err := e.gateway(ctx); g != nil || err != nil {
		return g, err
	}
	a, err := e.open(ctx)
	return alone{e, a}, err
}

// gateway is the gateway that is running, or nil.
func (e *env) gateway(ctx context.Context) (*viaGateway, error) {
	if e.local {
		return nil, nil
	}
	settings, err := e.load()
	if err != nil {
		return nil, err
	}
	socket := settings.SocketPath()
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, nil //nolint:nilerr // nobody is there
	}
	_ = conn.Close()
	c, err := client.New(client.Options{Socket: socket})
	if err != nil {
		return nil, err
	}
	return &viaGateway{c, settings}, answers(ctx, c, socket)
}

// gatewayPatience is how long a gateway has to say that it lives.
const gatewayPatience = 3 * time.Second

// answers returns an error if the process that has the socket does not answer, so
// that no verb waits for it without an end.
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
