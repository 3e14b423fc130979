package modelcmd

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/egress/service"
	"github.com/atoll-run/atoll/internal/model/token"
	"github.com/atoll-run/atoll/internal/run/execute"
	"github.com/atoll-run/atoll/internal/run/openclaw"
)

// defaultSlots is how many runs a gateway is configured for.
const defaultSlots = 8

// NewOpenClawConfigCommand returns the command `atoll openclaw config`.
func NewOpenClawConfigCommand(c *console.Env) *cobra.Command {
	e := &env{c}
	var o execute.OpenClawFiles
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "config --dir DIR",
		Short: "Write the configuration of a gateway, and its tokens",
		Long: `Write ` + execute.OpenClawConfigFile + `, which holds nothing secret, and ` + execute.OpenClawEnvFile + `, the variables with the
gateway's token and those of its slots.

The gateway knows nothing of bills: each slot is a provider of its own, and a run
that is given to the gateway has one to itself, so that the proxy (atoll proxy)
knows whose a call is. Tokens of slots are made anew each time, and the gateway
must be restarted with them; its own token stays as it is in DIR. Where rules of
sandbox.egress name secrets, ` + service.OutsideEnv + ` has their placeholders, for a gateway that
reaches those hosts by atoll openclaw egress.`,
		Example: `  atoll openclaw config --dir deploy/compose/openclaw
  atoll openclaw config --dir . --slots 16 --proxy http://127.0.0.1:8080`,
		Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOpenClawFiles(&o); err != nil {
				return console.Usage(cmd, err)
			}
			return e.runOpenClawConfig(cmd.Context(), o, asJSON)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Dir, "dir", "", "`directory` to write to (required)")
	flags.IntVar(&o.Slots, "slots", defaultSlots, "`number` of runs at a time")
	flags.StringVar(&o.Model, "model", "", "`id` of the model that the gateway takes by itself (default: the first of the catalogue)")
	flags.StringVar(&o.Proxy, "proxy", openclaw.DefaultProxy, "`URL` of the proxy, without /v1, as the gateway reaches it")
	flags.StringVar(&o.Release, "release", "", "`version` of OpenClaw (default: the current one)")
	flags.BoolVar(&o.Headers, "headers", false, "also a token whose callers say who they are, for a gateway that takes outboundHeaders")
	console.JSONFlag(cmd, &asJSON)
	return cmd
}

func checkOpenClawFiles(o *execute.OpenClawFiles) error {
	u, err := url.Parse(o.Proxy)
	switch {
	case o.Dir == "":
		return fmt.Errorf("--dir is missing")
	case o.Slots < 1 || o.Slots > token.MaxSlots:
		return fmt.Errorf("--slots: %d is not 1 to %d", o.Slots, token.MaxSlots)
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Path != "" || u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("--proxy: %q is no address such as %s", o.Proxy, openclaw.DefaultProxy)
	}
	return nil
}

func (e *env) runOpenClawConfig(ctx context.Context, o execute.OpenClawFiles, asJSON bool) error {
	a, err := e.Open(ctx)
	if err != nil {
		return err
	}
	if err := a.Runs.WriteOpenClawFiles(ctx, o); err != nil {
		return err
	}
	withEgress, err := writeGatewayEgress(ctx, a, o.Dir)
	if err != nil {
		return err
	}
	file, variables := filepath.Join(o.Dir, execute.OpenClawConfigFile), filepath.Join(o.Dir, execute.OpenClawEnvFile)
	if asJSON {
		return e.PrintJSON(map[string]any{"config": file, "env": variables, "slots": o.Slots, "egress": withEgress})
	}
	fmt.Fprintf(e.Out, "Written: %s, and %s with %d slots. Restart the gateway with them.\n", file, variables, o.Slots)
	if withEgress {
		fmt.Fprintf(e.Out, "Also %s, for `atoll openclaw egress`: placeholders of secrets, no values.\n", filepath.Join(o.Dir, service.OutsideEnv))
	}
	return nil
}
