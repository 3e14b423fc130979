package sandboxcmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/backend"
	"github.com/atoll-run/atoll/internal/cli/console"
)

type pruneOptions struct {
	workspaces bool
	asJSON     bool
}

func newPruneCommand(e *env) *cobra.Command {
	var o pruneOptions
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove idle and old sandboxes, and repair what a crash left",
		Example: `  atoll sandbox prune
  atoll sandbox prune --discard --json`,
		Long: `Remove sandboxes that are idle or old by their own agent's limits
(sandbox.prune), adopt or remove what a crash left, and forget what is gone.
Nothing in use, and nothing of another installation, is touched. Private copies
of workspaces stay unless --discard is given: then every copy that no sandbox
uses is removed, with the files that agents made there.`,
		Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runPrune(cmd.Context(), e, o) },
	}
	cmd.Flags().BoolVar(&o.workspaces, "discard", false, "also remove every private copy that no sandbox uses")
	console.OldSpelling(cmd, "workspaces", "discard")
	backend.LocalFlag(cmd, e.Env)
	console.JSONFlag(cmd, &o.asJSON)
	return cmd
}

func runPrune(ctx context.Context, e *env, o pruneOptions) error {
	b, err := backend.OpenSandboxes(ctx, e.Env)
	if err != nil {
		return e.ConfigError(err, o.asJSON)
	}
	rows, failed, err := b.Prune(ctx, o.workspaces)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if r.Error != "" {
			failed = errors.Join(failed, fmt.Errorf("%s: %s", r.Name, r.Error))
		}
	}
	if !o.asJSON {
		e.printPruned(rows, failed)
		return failed
	}
	return errors.Join(e.PrintJSON(map[string]any{"removed": rows}), failed)
}

func (e *env) printPruned(rows []backend.Pruned, failed error) {
	for _, r := range rows {
		if r.Error == "" {
			fmt.Fprintf(e.Out, "%s: removed, %s\n", r.Name, console.Printable(r.Reason))
		}
	}
	if len(rows) == 0 && failed == nil {
		fmt.Fprintln(e.Out, "Nothing to remove.")
	}
}
