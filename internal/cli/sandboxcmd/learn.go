package sandboxcmd

import (
	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/console"
)

// NewLearnCommand returns the command `atoll egress learn`, which is `atoll run` in the mode
// learn.
func NewLearnCommand(c *console.Env) *cobra.Command {
	cmd := newRunCommand(&env{c}, runKind{learn: true})
	cmd.Use, cmd.Short = "learn [flags] -- COMMAND [ARGUMENT…]", "Run one command that reaches any public name, and keep which"
	cmd.Long = `Run one command that reaches any public name on ports 80 and 443, whatever the mode of the
configuration is, and keep which. What deny names, private addresses and secrets stay out of
reach. Nothing is allowed by it afterwards: atoll egress propose makes rules of what was seen,
and atoll egress adopt puts them in force when a person says so.

The exit code is the command's, as of atoll run.`
	cmd.Example = "  atoll egress learn -- npm ci\n  atoll egress learn --workspace . --access rw -- make test"
	return cmd
}
