package sandboxcmd

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/console"
)

// NewWrapCommand returns the command `atoll mcp wrap`, which is `atoll run` for a program
// that ends with its client.
func NewWrapCommand(c *console.Env) *cobra.Command {
	cmd := newRunCommand(&env{c}, runKind{client: true})
	cmd.Use, cmd.Short = "wrap [flags] -- COMMAND [ARGUMENT…]", "Run an MCP server of others inside a sandbox"
	cmd.Long = `Run an MCP server of others inside a sandbox, and carry its standard input and output: write this in
front of its command in the configuration of a client. It reaches the names that sandbox.egress
and --egress allow, sees the files of its sandbox, and gets the variables of --env and of the configuration
alone. It ends, with all its processes, when the client closes its input or ends.

Everything but the server's output goes to standard error.`
	cmd.Example = `  atoll mcp wrap -- python3 server.py
  atoll mcp wrap --egress preset:npm -- npx -y @modelcontextprotocol/server-everything`
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, in, stop := console.WithClient(cmd.Context(), c.In)
		defer stop()
		c.In = in
		cmd.SetContext(ctx)
		err := run(cmd, args)
		if errors.Is(err, context.Canceled) && errors.Is(context.Cause(ctx), console.ErrClientGone) {
			return nil
		}
		return err
	}
	return cmd
}
