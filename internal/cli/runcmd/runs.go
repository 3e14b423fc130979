package runcmd

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/backend"
	"github.com/atoll-run/atoll/internal/cli/console"
	money "github.com/atoll-run/atoll/internal/model/usage"
)

// NewRunsCommand returns the command `atoll runs`.
func NewRunsCommand(c *console.Env) *cobra.Command {
	e := &env{c}
	cmd := &cobra.Command{
		Use: "runs", Short: "Give tasks to agents in sandboxes of their own; show what they did and cost",
		Example: `  atoll runs start -m "make the tests pass"
  atoll runs list --open`,
		Long: `A run is one task for one agent in a sandbox of its own, which has no network and
is removed afterwards. What stays is its receipt, its events and its bill.

While a gateway is running, it carries out what is asked for here.`,
	}
	backend.LocalFlag(cmd, e.Env)
	cmd.AddCommand(newRunsStartCommand(e), newRunsListCommand(e), newRunsShowCommand(e), newRunsEventsCommand(e), newRunsCostCommand(e))
	return cmd
}

type costOptions struct {
	since, account, run string
	asJSON              bool
}

func newRunsCostCommand(e *env) *cobra.Command {
	var o costOptions
	cmd := &cobra.Command{
		Use:   "cost [RUN]",
		Short: "Show what runs spent on models",
		Long: `Show what runs spent on models, the last first.

Where reconciliation found LiteLLM's figure, that is the one that counts. STATE is
provisional while the figure of a call is not known yet; unpriced counts calls of
models without a price, whose money nobody knows.`,
		Example: `  atoll runs cost --since 7d
  atoll runs cost run-42 --json`,
		Args: console.AtMostOne("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			filter := money.Filter{Account: o.account}
			if len(args) == 1 {
				o.run = args[0]
			}
			var err error
			if len(args) == 0 || cmd.Flags().Changed("since") {
				if filter.Since, err = console.Moment(cmd, o.since, time.Now()); err != nil {
					return err
				}
			}
			return runRunsCost(cmd.Context(), e, o, filter)
		},
	}
	console.SinceFlag(cmd, &o.since, "7d")
	cmd.Flags().StringVar(&o.account, "account", "", "only this billing account")
	console.JSONFlag(cmd, &o.asJSON)
	return cmd
}

func runRunsCost(ctx context.Context, e *env, o costOptions, filter money.Filter) error {
	b, err := backend.OpenRuns(ctx, e.Env)
	if err != nil {
		return e.ConfigError(err, o.asJSON)
	}
	runs, err := b.Costs(ctx, filter)
	if err == nil && o.run != "" {
		runs, err = backend.PickCosts(ctx, b, o.run, runs)
	}
	if err != nil {
		return err
	}
	if o.asJSON {
		return e.PrintJSON(map[string]any{"runs": runs})
	}
	if len(runs) == 0 {
		fmt.Fprintln(e.Out, "No run asked a model in this time.")
		return nil
	}
	t := console.NewTable("RUN", "ACCOUNT", "AGENT", "LAST", "CALLS", "TOKENS", "COST", "STATE")
	for _, r := range runs {
		t.Add(console.OrDash(r.Run), console.OrDash(r.Account), console.OrDash(r.Agent), console.Ago(time.Since(r.Last)), fmt.Sprint(r.Calls), fmt.Sprint(r.Tokens), money.Dollars(r.MicroUSD), costState(r))
	}
	t.Print(e.Out)
	return nil
}

func costState(r money.RunCost) string {
	state := "billed"
	if r.Provisional > 0 {
		state = fmt.Sprintf("provisional (%d of %d)", r.Provisional, r.Calls)
	}
	if r.Unpriced > 0 {
		state += fmt.Sprintf(", %d unpriced", r.Unpriced)
	}
	if r.Crashed > 0 {
		state += fmt.Sprintf(", %d of a process that died", r.Crashed)
	}
	return state
}
