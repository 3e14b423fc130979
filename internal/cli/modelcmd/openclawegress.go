package modelcmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/egress/service"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/secret"
)

const (
	// gatewayName is what records call a gateway in a container of its own.
	gatewayName = "openclaw-gateway"
	// gatewayTrust is where such a gateway sees the certificates of its egress.
	gatewayTrust = "/etc/openclaw/trust"
)

// NewOpenClawEgressCommand returns the command `atoll openclaw egress`.
func NewOpenClawEgressCommand(c *console.Env) *cobra.Command {
	e := &env{c}
	var o proxyOptions
	cmd := &cobra.Command{
		Use:   "egress --listen HOST:PORT",
		Short: "Serve the hosts that the rules name to a gateway in a container",
		Long: `Serve the hosts that sandbox.egress allows to a gateway in a container of its own, which
reaches them here under their names. Requests are judged and recorded as those of sandboxes
are; of secrets the gateway has placeholders, and the values are put in their place here.

atoll openclaw config writes what the gateway needs for it: ` + service.OutsideEnv + ` with the
placeholders, and ` + service.OutsideTrust + ` with the certificates to trust.`,
		Example: `  atoll openclaw egress --listen 0.0.0.0:443 --trusted-network`,
		Args:    console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.listen == "" {
				return console.Usage(cmd, errors.New("--listen is missing"))
			}
			return e.runOpenClawEgress(cmd.Context(), &o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.listen, "listen", "", "`address` to serve: unix:PATH or HOST:PORT (required)")
	flags.BoolVar(&o.trusted, "trusted-network", false, "serve an address that is not loopback: only trusted machines can reach it")
	return cmd
}

func (e *env) runOpenClawEgress(ctx context.Context, o *proxyOptions) error {
	if err := secret.Harden(); err != nil {
		return err
	}
	a, err := e.Open(ctx)
	if err != nil {
		return err
	}
	outside, err := gatewayEgress(a)
	if err != nil {
		return err
	}
	l, err := o.open(ctx, o.listen)
	if err != nil {
		return err
	}
	defer l.Close()
	fmt.Fprintln(e.Err, "serving the hosts of sandbox.egress on", l.Addr())
	return a.Egress.ServeOutside(ctx, outside, l)
}

// gatewayEgress is the egress of a gateway: that of the default agent.
func gatewayEgress(a *app.App) (*service.Outside, error) {
	p, err := a.Plan(provide.Subject{})
	if err != nil {
		return nil, err
	}
	c := service.ConfigOf(p, policy.HalfNetworked)
	return &service.Outside{Name: gatewayName, Config: &c}, nil
}

// writeGatewayEgress writes what a gateway needs for hosts with secrets, if rules name
// any and they have values.
func writeGatewayEgress(ctx context.Context, a *app.App, dir string) (written bool, err error) {
	o, err := gatewayEgress(a)
	if err != nil || !service.HasSecrets(o.Config) {
		return false, err
	}
	err = a.Egress.WriteOutside(ctx, o, dir, gatewayTrust)
	if errors.Is(err, secret.ErrAbsent) {
		return false, nil
	}
	return err == nil, err
}
