package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/sandbox/workspace"
)

type diffOptions struct {
	whoFlags
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
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			return runDiff(cmd.Context(), e, o)
		},
	}
	o.add(cmd)
	cmd.Flags().BoolVar(&o.nameOnly, "name-only", false, "show only the names")
	jsonFlag(cmd, &o.asJSON)
	return cmd
}

func runDiff(ctx context.Context, e *env, o diffOptions) error {
	settings, err := e.load()
	if err != nil {
		return e.configError(err, o.asJSON)
	}
	d, err := settings.Diff(ctx, o.who())
	if err != nil {
		return err
	}
	if o.asJSON {
		return e.printJSON(d)
	}
	e.printDiff(d, o.nameOnly)
	return nil
}

func (e *env) printDiff(d *app.Differences, nameOnly bool) {
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
		e.notice("there is more than is listed")
	}
}

// diffLine is one change, with the letter that version control uses for it.
func (e *env) diffLine(c app.FileDiff) string {
	style := e.style()
	letter := map[workspace.ChangeKind]string{
		workspace.Added: style.good("A"), workspace.Modified: style.warn("M"), workspace.Deleted: style.alarm("D"), workspace.Stale: style.dim("S"),
	}[c.Kind]
	line := letter + " " + printable(c.Path)
	if c.Note != "" {
		line += style.dim("  (" + printable(c.Note) + ")")
	}
	return line
}
