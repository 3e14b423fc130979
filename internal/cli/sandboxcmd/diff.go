package sandboxcmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/sandbox/workspace"
)

type diffOptions struct {
	console.SubjectFlags
	nameOnly bool
	asJSON   bool
}

func newDiffCommand(e *env) *cobra.Command {
	var o diffOptions
	cmd := &cobra.Command{
		Use:   "diff",
		Short: "Show what an agent changed in its private copy",
		Example: `  atoll sandbox diff
  atoll sandbox diff --agent main --name-only`,
		Long: `Show what an agent changed in its private copy since that was made:
files that were added, modified and deleted, as unified diffs, and originals that
changed since (stale). It needs no engine.`,
		Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Check(cmd); err != nil {
				return err
			}
			return runDiff(cmd.Context(), e, o)
		},
	}
	o.Add(cmd)
	cmd.Flags().BoolVar(&o.nameOnly, "name-only", false, "show only the names")
	console.JSONFlag(cmd, &o.asJSON)
	return cmd
}

func runDiff(ctx context.Context, e *env, o diffOptions) error {
	settings, err := e.Load()
	if err != nil {
		return e.ConfigError(err, o.asJSON)
	}
	d, err := settings.Diff(ctx, o.Who())
	if err != nil {
		return err
	}
	if o.asJSON {
		return e.PrintJSON(d)
	}
	e.printDiff(d, o.nameOnly)
	return nil
}

func (e *env) printDiff(d *provide.Differences, nameOnly bool) {
	if len(d.Changes) == 0 {
		fmt.Fprintln(e.Out, "No changes.")
	}
	for _, c := range d.Changes {
		fmt.Fprintln(e.Out, e.diffLine(c))
		if !nameOnly && c.Diff != "" {
			e.printText(c.Diff)
		}
	}
	if d.Truncated {
		e.Notice("there is more than is listed")
	}
}

// diffLine is one change, with the letter that version control uses for it.
func (e *env) diffLine(c provide.FileDiff) string {
	style := e.Style()
	letter := map[workspace.ChangeKind]string{
		workspace.Added: style.Good("A"), workspace.Modified: style.Warn("M"), workspace.Deleted: style.Alarm("D"), workspace.Stale: style.Dim("S"),
	}[c.Kind]
	line := letter + " " + console.Printable(c.Path)
	if c.Note != "" {
		line += style.Dim("  (" + console.Printable(c.Note) + ")")
	}
	return line
}
