package modelcmd

import (
	"context"
	"fmt"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/client"
	"github.com/atoll-run/atoll/internal/cli/backend"
	"github.com/atoll-run/atoll/internal/cli/console"
)

// dashboardIdle is after how long without use a gateway ends that was started for the
// dashboard. An open page uses it.
const dashboardIdle = 15 * time.Minute

// openers are the programs that open an address in a person's web browser.
var openers = []string{"xdg-open", "sensible-browser", "wslview"}

// NewDashboardCommand returns the command `atoll dashboard`.
func NewDashboardCommand(c *console.Env) *cobra.Command {
	e := &env{c}
	var noOpen, asJSON bool
	cmd := &cobra.Command{
		Use:   "dashboard",
		Short: "Open the web pages of the gateway: runs, sandboxes, approvals, cost",
		Long: `Open the web pages of the gateway in a web browser, logged in as you: what runs, what
waits for a person, sandboxes, cost and the audit log.

The address that it prints has a code which is good for one log-in within a minute. If
no gateway runs, one is started in the background; it ends when nobody used it for 15
minutes. With a token, a person elsewhere logs in at the gateway's address and /ui/.`,
		Example: `  atoll dashboard
  atoll dashboard --no-open`,
		Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return e.openDashboard(cmd.Context(), noOpen, asJSON) },
	}
	cmd.Flags().BoolVar(&noOpen, "no-open", false, "print the address only")
	console.JSONFlag(cmd, &asJSON)
	return cmd
}

// openDashboard prints the address of the dashboard with a code, and opens it.
func (e *env) openDashboard(ctx context.Context, noOpen, asJSON bool) error {
	gateway, err := GatewayWithPages(ctx, e.Env)
	if err != nil {
		return err
	}
	defer gateway.Close()
	code, err := gateway.CreateLogInCode(ctx)
	if err != nil {
		return backend.ProblemError(err)
	}
	if asJSON {
		return e.PrintJSON(code)
	}
	_, err = fmt.Fprintf(e.Out, "%s\n", code.URL)
	if err == nil && !noOpen {
		OpenAddress(ctx, e.Env, code.URL)
	}
	return err
}

// GatewayWithPages returns the gateway of this user, after it has started one in the
// background if none runs. The caller closes it.
func GatewayWithPages(ctx context.Context, c *console.Env) (*client.Client, error) {
	b, err := (&env{c}).newBackground("--idle", dashboardIdle.String())
	if err != nil {
		return nil, err
	}
	if err := b.ensure(ctx); err != nil {
		return nil, err
	}
	return client.New(client.Options{Socket: b.socket})
}

// OpenAddress opens an address in a person's web browser, if there is a screen and a
// program for that; the address was printed in any case.
func OpenAddress(ctx context.Context, c *console.Env, address string) {
	if c.Getenv("DISPLAY") == "" && c.Getenv("WAYLAND_DISPLAY") == "" {
		return
	}
	for _, name := range openers {
		if path, err := exec.LookPath(name); err == nil {
			_ = exec.CommandContext(ctx, path, address).Run()
			return
		}
	}
}
