// Package browsercmd has the verbs of browsers.
package browsercmd

import (
	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/backend"
	"github.com/atoll-run/atoll/internal/cli/console"
)

type env struct{ *console.Env }

// NewBrowserCommand returns the command `atoll browser`.
func NewBrowserCommand(c *console.Env) *cobra.Command {
	e := &env{c}
	cmd := &cobra.Command{
		Use:   "browser",
		Short: "Look at web pages with a browser in a sandbox",
		Long: `Look at web pages with a browser in a sandbox of its own: no workspace, no secret, no
network but what sandbox.egress allows (public addresses, if it says nothing). Chromium
keeps its own sandbox inside ours.`,
		Example: `  atoll browser open https://example.com/
  atoll browser list
  atoll browser watch agent-main`,
	}
	list, stop, attach := console.NewListCommand("browser", "Show the browsers there are", e.list), newStopCommand(e), newAttachCommand(e)
	for _, verb := range []*cobra.Command{list, stop, attach} {
		backend.LocalFlag(verb, c)
	}
	cmd.AddCommand(newOpenCommand(e), list, stop, newWatchCommand(e), attach)
	return cmd
}
