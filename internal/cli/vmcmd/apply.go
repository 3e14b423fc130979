package vmcmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/terminal"
	"github.com/atoll-run/atoll/internal/vm"
)

func (c *command) newApply() *cobra.Command {
	var all, asJSON bool
	cmd := &cobra.Command{
		Use: "apply (PATH… | --all-passing)", Short: "Apply what passes the sync gate inside to the project on this machine", Example: "  atoll vm apply --all-passing",
		Long: `Apply changes that pass the sync gate inside to the project on this machine, all of them or
none, at the content that the gate judged. What needs approval, is blocked or in conflict
is left and listed. The id that is printed undoes it.`,
	}
	cmd.Flags().BoolVar(&all, "all-passing", false, "everything that passes")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c.with(cmd, func(ctx context.Context, m *vm.Manager, args []string) error {
		if all == (len(args) > 0) {
			return errhint.With(errors.New("give paths, or --all-passing"), "`atoll sync status` lists what waits")
		}
		applied, err := m.Apply(ctx, args, all)
		if err != nil {
			return err
		}
		if asJSON {
			return encode(c.Out, applied)
		}
		text := terminal.Harmless(c.Out)
		for _, path := range applied.Left {
			fmt.Fprintf(text, "left     %s\n", path)
		}
		_, err = fmt.Fprintf(text, "applied  %d files %s\n", len(applied.Files), applied.ID)
		return err
	})
}

func (c *command) newUndo() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{Use: "undo BATCH", Short: "Put back what apply changed", Args: cobra.ExactArgs(1), Example: "  atoll vm undo K3J5XQ2M7ABC"}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c.with(cmd, func(_ context.Context, m *vm.Manager, args []string) error {
		files, err := m.Undo(args[0])
		if err != nil {
			return err
		}
		if asJSON {
			return encode(c.Out, map[string][]string{"files": files})
		}
		_, err = fmt.Fprintf(terminal.Harmless(c.Out), "put back %d files\n", len(files))
		return err
	})
}
