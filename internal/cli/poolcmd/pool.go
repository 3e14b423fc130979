// Package poolcmd has the verbs of pools.
package poolcmd

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/cli/backend"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/errhint"
)

type env struct{ *console.Env }

// NewPoolCommand returns the command `atoll pool`.
func NewPoolCommand(c *console.Env) *cobra.Command {
	e := &env{c}
	cmd := &cobra.Command{
		Use:   "pool",
		Short: "Look at the sandboxes that wait to be used, and set how many wait",
		Long: `Look at the sandboxes that wait to be used, and set how many wait.

The gateway keeps as many sandboxes of an agent ready as pools.AGENT.size says, so that
a new one begins with work at once. Each is claimed once and never used again.`,
		Example: `  atoll pool list
  atoll pool resize main 4`,
	}
	backend.GatewayFlag(cmd, c)
	cmd.AddCommand(console.NewListCommand("pool", "Show the pools and how full they are", e.list), newResizeCommand(e))
	return cmd
}

func newResizeCommand(e *env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "resize AGENT SIZE",
		Short: "Set how many sandboxes of an agent wait",
		Long: `Set how many sandboxes of an agent wait, from 0 to 64, and at most 256 in all pools.
It holds, also for later gateways, until pools.AGENT.size is changed.`,
		Example: `  atoll pool resize main 4
  atoll pool resize api 0`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return console.Usage(cmd, errors.New("give an agent and a size"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.resize(cmd.Context(), args[0], args[1], asJSON)
		},
	}
	console.JSONFlag(cmd, &asJSON)
	return cmd
}

// gateway returns the gateway that keeps the pools.
func (e *env) gateway(ctx context.Context) (*backend.Gateway, error) {
	g, err := backend.RunningGateway(ctx, e.Env)
	if err == nil && g == nil {
		err = errhint.With(errors.New("no gateway runs, which keeps the pools"), "start it with `atoll gateway`, or name one with --gateway")
	}
	return g, err
}

// list prints the pools.
func (e *env) list(ctx context.Context, asJSON bool) error {
	g, err := e.gateway(ctx)
	if err != nil {
		return e.ConfigError(err, asJSON)
	}
	all, err := g.Client.Pools(ctx)
	if err != nil {
		return backend.ProblemError(err)
	}
	if asJSON {
		return e.PrintJSON(all)
	}
	if len(all.Pools) == 0 {
		fmt.Fprintln(e.Out, "No pools. `atoll pool resize AGENT SIZE` or pools.AGENT.size makes one.")
		return e.Out.Err
	}
	t := console.NewTable("AGENT", "SIZE", "READY", "MAKING", "CLAIMED", "MISSED", "BACKEND", "PROBLEM")
	for i := range all.Pools {
		p := &all.Pools[i]
		t.Add(console.Printable(p.Agent), strconv.Itoa(p.Size), strconv.Itoa(p.Ready), strconv.Itoa(p.Making), strconv.FormatInt(p.Claimed, 10),
			strconv.FormatInt(p.Missed, 10), p.Backend, console.Shortened(console.Printable(p.Problem), problemWidth))
	}
	t.Print(e.Out)
	return e.Out.Err
}

// problemWidth is how much of a problem list shows.
const problemWidth = 80

// resize sets the size of one pool.
func (e *env) resize(ctx context.Context, agent, text string, asJSON bool) error {
	size, err := strconv.Atoi(text)
	if err != nil {
		return console.WithCode(console.ExitUsage, errhint.With(fmt.Errorf("%q is no size", text), "give a number from 0 to 64"))
	}
	g, err := e.gateway(ctx)
	if err != nil {
		return e.ConfigError(err, asJSON)
	}
	p, err := g.Client.ResizePool(ctx, agent, api.ResizePool{Size: size})
	if err != nil {
		return backend.ProblemError(err)
	}
	if asJSON {
		return e.PrintJSON(p)
	}
	_, err = fmt.Fprintf(e.Out, "Pool of %s: %d are to wait, %d do\n", console.Printable(p.Agent), p.Size, p.Ready)
	return err
}
