// Package secretscmd has the verb secrets: values that sandboxes use and never see.
package secretscmd

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/secret/secretstore"
)

// env is the command line at work, with the methods of this package.
type env struct{ *console.Env }

// NewSecretsCommand returns the command `atoll secrets`.
func NewSecretsCommand(c *console.Env) *cobra.Command {
	e := &env{c}
	cmd := &cobra.Command{
		Use:   "secrets",
		Short: "Keep values that sandboxes use and never see",
		Example: `  pass show github | atoll secrets set github
  atoll secrets list`,
		Long: `Keep values that sandboxes use and never see.

A sandbox has a placeholder in the place of each value. The host puts the value
into one header of requests, to the hosts that secrets.NAME.hosts of the
configuration names, and nowhere else.

Values are files for their owner alone, in the state directory. No verb prints one.`,
	}
	cmd.AddCommand(newSetCommand(e), newListCommand(e), newImportCommand(e), newRmCommand(e))
	return cmd
}

// dir is where the values are kept.
func dir(s *provide.Settings) string { return filepath.Join(s.Paths.AtollState, secretstore.Dir) }
