package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/app"
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
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runPrune(cmd.Context(), e, o) },
	}
	cmd.Flags().BoolVar(&o.workspaces, "discard", false, "also remove every private copy that no sandbox uses")
	oldSpelling(cmd, "workspaces", "discard")
	localFlag(cmd, e)
	jsonFlag(cmd, &o.asJSON)
	return cmd
}

// pruned is one row of prune's answer.
type pruned struct {
	Name   string `json:"containerName"`
	Reason string `json:"reason"`
	Error  string `json:"error,omitempty"`
}

func runPrune(ctx context.Context, e *env, o pruneOptions) error {
	desk, err := e.boxDesk(ctx)
	if err != nil {
		return e.configError(err, o.asJSON)
	}
	rows, failed, err := desk.prune(ctx, o.workspaces)
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
	return errors.Join(e.printJSON(map[string]any{"removed": rows}), failed)
}

func (e *env) printPruned(rows []pruned, failed error) {
	for _, r := range rows {
		if r.Error == "" {
			fmt.Fprintf(e.Out, "%s: removed, %s\n", r.Name, printable(r.Reason))
		}
	}
	if len(rows) == 0 && failed == nil {
		fmt.Fprintln(e.Out, "Nothing to remove.")
	}
}

func prune(ctx context.Context, a *app.App, workspaces bool) ([]pruned, error) {
	removals, err := a.Prune(ctx, workspaces)
	if err != nil {
		return nil, err
	}
	rows := []pruned{}
	for _, r := range removals {
		row := pruned{Name: r.Entry.ContainerName, Reason: r.Reason}
		if r.Err != nil {
			row.Error = r.Err.Error()
		}
		rows = append(rows, row)
	}
	return rows, nil
}
