package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/version"
)

func newVersionCommand(e *env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Say which build this is",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			info := version.Current()
			if asJSON {
				return e.printJSON(info)
			}
			_, err := fmt.Fprintf(e.Out, "atoll %s (%s, %s)\n", info.Version, info.Platform, info.Go)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
