package synccmd

import (
	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/backend"
	"github.com/atoll-run/atoll/internal/cli/console"
)

// NewSyncCommand returns the command `atoll sync`.
func NewSyncCommand(c *console.Env) *cobra.Command {
	cmd := newCommand(&env{Env: c})
	backend.LocalFlag(cmd, c)
	return cmd
}

func newCommand(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "sync", Short: "Review what an agent changed, and take it over",
		Example: `  atoll sync review
  atoll sync approve 'src/**'
  atoll sync undo s-7f3k`,
		Long: `With workspaceAccess "overlay" an agent sees the project and writes to it, and the
host's files stay as they are. What it changed waits at the gate: these verbs show
it, apply what a person approves, and put it back. The sandbox is that of the
working directory, of --run-id, or of --agent and --session.

Exit codes: 0 done, 1 failed, 2 usage, 3 something is blocked, in conflict or not
what was shown, 4 there is no overlay.`,
	}
	for _, make := range []func(*env) *cobra.Command{
		newStatusCommand, newReviewCommand, newDiffCommand, newApproveCommand, newRejectCommand, newOverrideCommand, newTakeCommand, newCommitsCommand,
		newUndoCommand, newHistoryCommand, newRefreshCommand, newResetCommand, newAcceptTornCommand, newAppliedCommand,
	} {
		cmd.AddCommand(make(e))
	}
	return cmd
}
