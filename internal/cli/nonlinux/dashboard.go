package nonlinux

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"
)

// openers are the programs that open an address in a web browser, by system.
var openers = map[string][]string{
	"darwin":  {"open"},
	"windows": {"rundll32", "url.dll,FileProtocolHandler"},
}

func newDashboardCommand(e *env) *cobra.Command {
	var noOpen, asJSON bool
	cmd := &cobra.Command{
		Use: "dashboard", Short: "Open the web pages of the gateway", Args: cobra.NoArgs,
		Long:    "Open the web pages of the gateway. They ask for a token, which `atoll token create` makes on the gateway's machine.",
		Example: "  atoll dashboard --gateway https://atoll.example.org",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.openDashboard(cmd.Context(), noOpen, asJSON)
		},
	}
	cmd.Flags().BoolVar(&noOpen, "no-open", false, "print the address only")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (e *env) openDashboard(ctx context.Context, noOpen, asJSON bool) error {
	to, err := e.target()
	if err != nil {
		return err
	}
	address := strings.TrimSuffix(to.URL, "/") + "/ui/"
	if asJSON {
		return json.NewEncoder(e.Out).Encode(map[string]string{"url": address})
	}
	if opener := openers[e.System]; opener != nil && !noOpen {
		_ = exec.CommandContext(ctx, opener[0], append(opener[1:], address)...).Run() // the address is printed in any case
	}
	_, err = fmt.Fprintln(e.Out, address)
	return err
}
