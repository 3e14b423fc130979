package sandboxcmd

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/backend"
	"github.com/atoll-run/atoll/internal/cli/console"
)

type extendOptions struct {
	timeout time.Duration
	asJSON  bool
}

// NewExtendCommand returns the command `atoll extend`.
func NewExtendCommand(c *console.Env) *cobra.Command {
	e := &env{c}
	var o extendOptions
	cmd := &cobra.Command{
		Use:   "extend SANDBOX [--timeout TIME]",
		Short: "Move the deadline of a sandbox that was made with atoll create",
		Long: `Move the deadline of a sandbox that was made with atoll create, or by a program, to
a time from now, which may also be sooner than the deadline that it has. It prints the
new deadline.`,
		Example: `  atoll extend openclaw-sbx-agent-api-q3wz --timeout 2h`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return console.Usage(cmd, fmt.Errorf("the name of one sandbox is needed, %d were given", len(args)))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), e, args[0]) },
	}
	console.LifeFlag(cmd, &o.timeout, "timeout", defaultDeadline, "remove it, or stop it, after this `time`")
	console.JSONFlag(cmd, &o.asJSON)
	return cmd
}

func (o *extendOptions) run(ctx context.Context, e *env, name string) error {
	g, err := e.needGateway(ctx)
	if err != nil {
		return err
	}
	box, err := g.Client.ExtendSandbox(ctx, name, int64(o.timeout.Seconds()))
	if err != nil {
		return backend.ProblemError(err)
	}
	if o.asJSON {
		return e.PrintJSON(box)
	}
	_, err = fmt.Fprintln(e.Out, box.Deadline.Local().Format(time.DateTime))
	return err
}
