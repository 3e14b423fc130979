package browsercmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/client"
	"github.com/atoll-run/atoll/internal/cli/backend"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/cli/modelcmd"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/gateway/browsers"
)

// watchOptions are the flags of `atoll browser watch`.
type watchOptions struct {
	viewOnly, noOpen, asJSON bool
}

// errNoPage is returned where a gateway has no pages that a web browser reaches.
var errNoPage = errhint.With(errors.New("this gateway serves no pages to web browsers"), "set gateway.controlUi.enabled to true, and start a gateway that listens on an address: `atoll gateway`")

func newWatchCommand(e *env) *cobra.Command {
	var o watchOptions
	cmd := &cobra.Command{
		Use:   "watch BROWSER",
		Short: "Watch a browser in a page, and take it over",
		Long: `Print the address of a page that shows a browser, and open it in your web browser. There
you can take the browser over, for a log-in or a CAPTCHA, and give it back; the agent
waits meanwhile.

The address has a ticket which is good once, within a minute. If no gateway runs, one is
started in the background; it ends when nobody used it for 15 minutes.`,
		Example: `  atoll browser watch agent-main
  atoll browser watch agent-main --view-only --no-open`,
		Args: console.ExactlyOne("BROWSER"),
		RunE: func(cmd *cobra.Command, args []string) error { return e.watch(cmd.Context(), args[0], o) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.viewOnly, "view-only", false, "the page cannot take the browser over")
	flags.BoolVar(&o.noOpen, "no-open", false, "print the address only")
	console.JSONFlag(cmd, &o.asJSON)
	return cmd
}

// watch prints the address of the page with a ticket, and opens it.
func (e *env) watch(ctx context.Context, word string, o watchOptions) error {
	gateway, err := modelcmd.GatewayWithPages(ctx, e.Env)
	if err != nil {
		return err
	}
	defer gateway.Close()
	found, err := pick(ctx, &backend.Gateway{Client: gateway}, word)
	if err != nil {
		return err
	}
	endpoint, err := offer(ctx, gateway, found, o.viewOnly)
	switch {
	case err != nil:
		return backend.ProblemError(err)
	case endpoint.Page == "":
		return errNoPage
	case o.asJSON:
		return e.PrintJSON(endpoint)
	}
	if _, err := fmt.Fprintln(e.Out, endpoint.Page); err != nil || o.noOpen {
		return err
	}
	modelcmd.OpenAddress(ctx, e.Env, endpoint.Page)
	return nil
}

// offer returns the view of a browser that runs.
func offer(ctx context.Context, gateway *client.Client, b *api.Browser, viewOnly bool) (*api.BrowserEndpoint, error) {
	if !b.Open {
		return nil, browsers.ErrNotRunning
	}
	control := b.Control && !viewOnly
	if b.Window {
		return gateway.WatchWindow(ctx, b.Name, &api.WatchWindow{Control: control})
	}
	return gateway.ViewBrowser(ctx, b.Name, &api.ViewBrowser{Control: control})
}
