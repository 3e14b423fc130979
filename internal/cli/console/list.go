package console

import (
	"context"

	"github.com/spf13/cobra"
)

// NewListCommand returns the command `atoll NOUN list`, which takes no arguments
// and prints a table, or JSON.
func NewListCommand(noun, short string, run func(ctx context.Context, asJSON bool) error) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: short, Example: "  atoll " + noun + " list\n  atoll " + noun + " ls --json", Args: NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), asJSON) },
	}
	JSONFlag(cmd, &asJSON)
	return cmd
}
