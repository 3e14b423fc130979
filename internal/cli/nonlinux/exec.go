package nonlinux

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/client"
	"github.com/atoll-run/atoll/internal/terminal"
)

// exitError is the exit code of a command that ran.
type exitError int

// Error implements error.
func (e exitError) Error() string { return fmt.Sprintf("the command exited with %d", int(e)) }

func newExecCommand(e *env) *cobra.Command {
	var asJSON bool
	var q api.ExecRequest
	cmd := &cobra.Command{
		Use: "exec SANDBOX -- COMMAND…", Short: "Run a command in a sandbox of a gateway", Args: cobra.MinimumNArgs(2),
		Long:    "Run a command in a sandbox of a gateway, by the name or id that ps shows. The exit code is the command's.",
		Example: "  atoll exec api-42 -- make test",
		RunE: func(cmd *cobra.Command, args []string) error {
			if q.Argv = args[1:]; q.Argv[0] == "--" {
				q.Argv = q.Argv[1:]
			}
			return e.exec(cmd.Context(), args[0], &q, asJSON)
		},
	}
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().StringVarP(&q.Dir, "workdir", "w", "", "`directory` inside")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (e *env) exec(ctx context.Context, id string, q *api.ExecRequest, asJSON bool) error {
	c, err := e.open()
	if err != nil {
		return err
	}
	defer c.Close()
	var result *api.ExecResult
	if asJSON {
		if result, err = c.Exec(ctx, id, q); err == nil {
			err = json.NewEncoder(e.Out).Encode(result)
		}
	} else {
		result, err = c.ExecStream(ctx, id, q, client.Output{Stdout: e.Out, Stderr: e.Err})
	}
	if err == nil && result.Error != "" && !asJSON {
		fmt.Fprintln(terminal.Harmless(e.Err), result.Error)
	}
	if err == nil && result.ExitCode != 0 {
		err = exitError(result.ExitCode)
	}
	return err
}
