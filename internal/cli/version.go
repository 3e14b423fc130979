package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/version"
)

// versionText is what people read of this build.
func versionText() string {
	info := version.Current()
	return fmt.Sprintf("atoll %s (%s, %s)", info.Version, info.Platform, info.Go)
}

func newVersionCommand(e *env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Say which build this is",
		Example: `  atoll version
  atoll version --json`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			info := version.Current()
			if asJSON {
				return e.printJSON(info)
			}
			_, err := fmt.Fprintln(e.Out, versionText())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
