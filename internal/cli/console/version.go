package console

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/version"
)

// VersionText is what people read of this build.
func VersionText() string {
	info := version.Current()
	return fmt.Sprintf("atoll %s (%s, %s)", info.Version, info.Platform, info.Go)
}

// NewVersionCommand returns the command `atoll version`.
func NewVersionCommand(e *Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Say which build this is",
		Example: `  atoll version
  atoll version --json`,
		Args: NoArgs,
		RunE: func(*cobra.Command, []string) error {
			info := version.Current()
			if asJSON {
				return e.PrintJSON(info)
			}
			_, err := fmt.Fprintln(e.Out, VersionText())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
