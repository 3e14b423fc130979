package browsercmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/console"
)

func newStopCommand(e *env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "stop BROWSER",
		Short: "End a browser",
		Long: `End a browser, with the connections of all who watch it or have attached programs to it.
Its sandbox stays; the next use starts a browser with an empty profile.`,
		Example: `  atoll browser stop openclaw-sbx-browser-agent-main`,
		Args:    console.ExactlyOne("BROWSER"),
		RunE:    func(cmd *cobra.Command, args []string) error { return e.stop(cmd.Context(), args[0], asJSON) },
	}
	console.JSONFlag(cmd, &asJSON)
	return cmd
}

func (e *env) stop(ctx context.Context, word string, asJSON bool) error {
	b, found, err := e.find(ctx, word)
	if err != nil {
		return err
	}
	if err := b.StopBrowser(ctx, found.Name); err != nil {
		return err
	}
	if asJSON {
		return e.PrintJSON(map[string]string{"ended": found.Name})
	}
	fmt.Fprintf(e.Out, "ended %s\n", found.Name)
	return e.Out.Err
}
