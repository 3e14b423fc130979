package vmcmd

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/terminal"
	"github.com/atoll-run/atoll/internal/vm"
)

func (c *command) newApply() *cobra.Command {
	var choice vm.Choice
	var asJSON bool
	cmd := &cobra.Command{
		Use: "apply (PATH… | --all-passing)", Short: "Apply what passes the sync gate inside to the project on this machine", Example: "  atoll vm apply --all-passing\n  atoll vm apply run.sh --reason 'it is a program'",
		Long: `Apply changes that pass the sync gate inside to the project on this machine, all of them or
none, at the content that the gate judged. What needs approval, is blocked or in conflict
is left and listed; with a reason what needs approval is applied too, by its path. Files
get the mode that they have inside, without rights to write for others. The id that is
printed undoes it.`,
	}
	cmd.Flags().BoolVar(&choice.All, "all-passing", false, "everything that passes")
	cmd.Flags().StringVar(&choice.Reason, "reason", "", "apply also paths that need approval, for this `reason`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c.with(cmd, func(ctx context.Context, m *vm.Manager, args []string) error {
		if choice.Paths = args; choice.All == (len(args) > 0) || choice.All && choice.Reason != "" {
			return errhint.With(errors.New("give paths, or --all-passing; a reason is for paths"), "`atoll sync status` lists what waits")
		}
		applied, err := m.Apply(ctx, choice)
		if err != nil {
			return err
		}
		if asJSON {
			return encode(c.Out, applied)
		}
		return showApplied(c.Out, applied)
	})
}

// showApplied prints what was applied and what was left.
func showApplied(out io.Writer, applied *vm.Applied) error {
	text := terminal.Harmless(out)
	for _, path := range applied.Left {
		fmt.Fprintf(text, "left     %s\n", path)
	}
	if applied.Note != "" {
		fmt.Fprintf(text, "note     %s\n", applied.Note)
	}
	_, err := fmt.Fprintf(text, "applied  %d files %s\n", len(applied.Files), applied.ID)
	return err
}

func (c *command) newUndo() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "undo BATCH", Short: "Put back what apply changed", Args: cobra.ExactArgs(1), Example: "  atoll vm undo K3J5XQ2M7ABC",
		Long: "Put back what a batch of apply changed. A file that changed since is named, and nothing is\nput back. Inside, the agent's changes wait again.",
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c.with(cmd, func(ctx context.Context, m *vm.Manager, args []string) error {
		undone, err := m.Undo(ctx, args[0])
		if err != nil {
			return err
		}
		if asJSON {
			return encode(c.Out, undone)
		}
		text := terminal.Harmless(c.Out)
		if undone.Note != "" {
			fmt.Fprintf(text, "note     %s\n", undone.Note)
		}
		_, err = fmt.Fprintf(text, "put back %d files\n", len(undone.Files))
		return err
	})
}
