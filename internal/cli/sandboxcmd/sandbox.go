package sandboxcmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/console"
)

// NewSandboxCommand returns the command `atoll sandbox`.
func NewSandboxCommand(c *console.Env) *cobra.Command {
	e := &env{c}
	cmd := &cobra.Command{Use: "sandbox", Short: "Explain, list, use and replace sandboxes", Example: `  atoll sandbox explain
  atoll sandbox list
  atoll sandbox exec -- ls -la`}
	cmd.AddCommand(newListCommand(e), newExplainCommand(e), newExecCommand(e), newPsCommand(e), newLogsCommand(e), newCpCommand(e), newDiffCommand(e), newVerifyCommand(e),
		newForkCommand(e), NewStopCommand(c), NewRmCommand(c), newRecreateCommand(e), newPruneCommand(e))
	return cmd
}

func newExecCommand(e *env) *cobra.Command {
	var o commandOptions
	cmd := &cobra.Command{
		Use:   "exec [flags] -- COMMAND [ARGUMENT…]",
		Short: "Run a command in a session's sandbox, making it if needed",
		Example: `  atoll sandbox exec -- ls -la
  atoll sandbox exec --agent work --timeout 10s -- sh -c 'sleep 1; echo done'`,
		Args: console.SomeCommand,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			return runExec(cmd.Context(), e, o, args)
		},
	}
	o.add(cmd)
	return cmd
}

func runExec(ctx context.Context, e *env, o commandOptions, argv []string) error {
	a, err := e.Open(ctx)
	if err != nil {
		return err
	}
	session, err := e.provide(ctx, a, o.Who())
	if err != nil {
		return err
	}
	defer session.Release()
	return e.runAudited(ctx, a, session, o, argv)
}
