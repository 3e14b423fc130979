package modelcmd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/model/billing"
	money "github.com/atoll-run/atoll/internal/model/usage"
)

// NewBillingCommand returns the command `atoll billing`.
func NewBillingCommand(c *console.Env) *cobra.Command {
	e := &env{c}
	cmd := &cobra.Command{Use: "billing", Short: "Compare what was spent with what was billed", Example: `  atoll billing reconcile --since 24h`}
	cmd.AddCommand(newReconcileCommand(e), newRepairCommand(e))
	return cmd
}

type reconcileOptions struct {
	since, account, run string
	wait                bool
	asJSON              bool
}

func newReconcileCommand(e *env) *cobra.Command {
	var o reconcileOptions
	cmd := &cobra.Command{
		Use:   "reconcile",
		Short: "Take over LiteLLM's figures and report every difference",
		Long: `Compare the calls of this installation with LiteLLM's spend logs, by our own
request id, and take LiteLLM's figures over: receipts and budgets follow them.

A call that LiteLLM has not written down yet is pending for llm.billing.graceSeconds,
then missing. Calls that are missing on either side make the exit code 1.`,
		Example: `  atoll billing reconcile --since 24h
  atoll billing reconcile --since 2026-01-01 --account acme --json`,
		Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			since, err := console.Moment(cmd, o.since, time.Now())
			if err != nil {
				return err
			}
			return runReconcile(cmd.Context(), e, o, since)
		},
	}
	console.SinceFlag(cmd, &o.since, "24h")
	flags := cmd.Flags()
	flags.StringVar(&o.account, "account", "", "only this billing account")
	console.RunFilterFlag(cmd, &o.run)
	flags.BoolVar(&o.wait, "wait", false, "look again until no call is pending")
	console.JSONFlag(cmd, &o.asJSON)
	return cmd
}

func runReconcile(ctx context.Context, e *env, o reconcileOptions, since time.Time) error {
	a, err := e.Open(ctx)
	if err != nil {
		return e.ConfigError(err, o.asJSON)
	}
	done := e.Progress("asking for spend logs")
	reports, err := a.Models.Reconcile(ctx, billing.Options{Since: since, Account: o.account, Run: o.run, Wait: o.wait})
	done()
	if err != nil {
		return err
	}
	failed := missingOf(reports)
	if o.asJSON {
		return errors.Join(e.PrintJSON(map[string]any{"providers": reports}), failed)
	}
	for _, name := range slices.Sorted(maps.Keys(reports)) {
		e.printReport(name, reports[name])
	}
	return failed
}

// missingOf is the error of calls that one side does not know.
func missingOf(reports map[string]*billing.Report) error {
	upstream, local, others := 0, 0, 0
	for _, r := range reports {
		upstream += len(r.MissingUpstream)
		local += len(r.MissingLocal)
		others += len(r.OtherPayer)
	}
	switch {
	case others > 0:
		return errhint.With(fmt.Errorf("%d calls are billed to another account than the one they were made for", others),
			"look in LiteLLM's settings for what maps headers or members of a request to end users (user_header_mappings)")
	case upstream+local == 0:
		return nil
	}
	return errhint.With(fmt.Errorf("%d calls are missing upstream, %d here", upstream, local),
		"LiteLLM may delete old rows or drop those of broken streams; calls missing here were made with our mark by somebody else, or their record is lost")
}

func (e *env) printReport(name string, r *billing.Report) {
	fmt.Fprintf(e.Out, "%s: %d calls, %d matched, %d pending, %d corrected\n", console.Printable(name), r.Calls, r.Matched, r.Pending, r.Corrected)
	fmt.Fprintf(e.Out, "  here %s, billed %s, difference %s\n", money.Dollars(r.LocalMicroUSD), money.Dollars(r.BilledMicroUSD), money.Dollars(r.DeltaMicroUSD))
	if r.UnmatchedMicroUSD > 0 {
		fmt.Fprintf(e.Out, "  %s more here, of calls that are pending or missing upstream\n", money.Dollars(r.UnmatchedMicroUSD))
	}
	if r.Provisional {
		fmt.Fprintln(e.Out, "  provisional: some calls are not written down upstream")
	}
	t := console.NewTable("MISSING", "REQUEST", "RUN", "ACCOUNT", "MODEL", "AT", "COST")
	for _, side := range []struct {
		name string
		list []billing.Missing
	}{{"upstream", r.MissingUpstream}, {"here", r.MissingLocal}, {"billed to", r.OtherPayer}} {
		for _, m := range side.list {
			t.Add(side.name, m.ID, console.OrDash(m.Run), console.OrDash(m.Account), console.OrDash(m.Model), m.At.Local().Format(time.DateTime), money.Dollars(m.MicroUSD))
		}
	}
	if t.Len() > 0 {
		t.Print(e.Out)
	}
}
