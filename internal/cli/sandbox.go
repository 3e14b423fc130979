package cli

import (
	"context"

	"github.com/spf13/cobra"
)

func newSandboxCommand(e *env) *cobra.Command {
	cmd := &cobra.Command{Use: "sandbox", Short: "Explain, list, use and replace sandboxes", Example: `  atoll sandbox explain
  atoll sandbox list
  atoll sandbox exec -- ls -la`}
	cmd.AddCommand(newListCommand(e), newExplainCommand(e), newExecCommand(e), newPsCommand(e), newLogsCommand(e), newCpCommand(e), newDiffCommand(e), newVerifyCommand(e),
		newForkCommand(e), newStopCommand(e), newRmCommand(e), newRecreateCommand(e), newPruneCommand(e))
	return cmd
}

func newExecCommand(e *env) *cobra.Command {
	var o commandOptions
	cmd := &cobra.Command{
		Use:   "exec [flags] -- COMMAND [ARGUMENT…]",
		Short: "Run a command in a session's sandbox, making it if needed",
		Example: `  atoll sandbox exec -- ls -la
  atoll sandbox exec --agent work --timeout 10s -- sh -c 'sleep 1; echo done'`,
		Args: someCommand,
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
	a, err := e.open(ctx)
	if err != nil {
		return err
	}
	session, err := e.provide(ctx, a, o.who())
	if err != nil {
		return err
	}
	defer session.Release()
	return e.runCommand(ctx, session, o, argv)
}
