package runcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/cli/backend"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
)

type runsListOptions struct {
	run.Filter
	asJSON bool
}

func newRunsListCommand(e *env) *cobra.Command {
	var o runsListOptions
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List runs, the latest first",
		Example: `  atoll runs list --open
  atoll runs list -n 50 --before run-42 --json`,
		Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runRunsList(cmd.Context(), e, &o)
		},
	}
	flags := cmd.Flags()
	console.LimitFlag(cmd, &o.Most, 20, run.MaxList)
	flags.StringVar(&o.Before, "before", "", "only those that were asked for before this `run`: the next page")
	flags.StringVar(&o.Account, "account", "", "only this billing account")
	flags.StringVar(&o.Variant, "variant", "", "only this kind of `agent`")
	flags.BoolVar(&o.Open, "open", false, "only those that are not over")
	console.JSONFlag(cmd, &o.asJSON)
	return cmd
}

func runRunsList(ctx context.Context, e *env, o *runsListOptions) error {
	b, err := backend.OpenRuns(ctx, e.Env)
	if err != nil {
		return e.ConfigError(err, o.asJSON)
	}
	list, err := b.List(ctx, o.Filter)
	if err != nil {
		return backend.NoSuchRun(err)
	}
	next := ""
	if len(list) == o.Most {
		next = list[len(list)-1].ID
	}
	if o.asJSON {
		return e.PrintJSON(map[string]any{"runs": console.OrEmpty(list), "next": next})
	}
	if len(list) == 0 {
		fmt.Fprintln(e.Out, "No runs.")
		return nil
	}
	t := console.NewTable("RUN", "AGENT", "ACCOUNT", "MODEL", "STARTED", "TOOK", "STATE", "COST")
	for i := range list {
		r := &list[i]
		t.Add(cmp.Or(r.KnownAs, r.ID), r.Variant, console.OrDash(r.Account), r.Model, console.Ago(time.Since(r.Created)), tookText(r), runState(r), billText(&r.Bill))
	}
	t.Print(e.Out)
	if next != "" {
		fmt.Fprintln(e.Err, "note: there may be more: add --before "+next)
	}
	return nil
}

func tookText(r *run.Receipt) string {
	if r.Ended.IsZero() {
		return "-"
	}
	return r.Ended.Sub(r.Created).Round(10 * time.Millisecond).String()
}

// runState is how far a run has come, or how it ended.
func runState(r *run.Receipt) string {
	switch {
	case r.Error != nil:
		return r.Error.Code
	case r.Step == run.Over:
		return "ok"
	}
	return string(r.Step)
}

func newRunsShowCommand(e *env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show RUN",
		Short: "Show a run: its answer, how it ended, its bill",
		Long: `Show a run's receipt. A bill that was provisional is compared with the provider's
books again.`,
		Example: `  atoll runs show run-42
  atoll runs show run-42 --json`,
		Args: console.ExactlyOne("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error { return runRunsShow(cmd.Context(), e, args[0], asJSON) },
	}
	console.JSONFlag(cmd, &asJSON)
	return cmd
}

func runRunsShow(ctx context.Context, e *env, id string, asJSON bool) error {
	b, err := backend.OpenRuns(ctx, e.Env)
	if err != nil {
		return e.ConfigError(err, asJSON)
	}
	var r *run.Receipt
	err = backend.WithRun(ctx, b, id, func(id string) (err error) {
		r, err = b.Show(ctx, id)
		return err
	})
	if err != nil {
		return err
	}
	if asJSON {
		return e.PrintJSON(r)
	}
	e.printReceipt(r, e.waitingOf(ctx, r))
	return nil
}

// waitingOf says what of a run on a directory waits now, and the command that shows
// it; "" if it was on none.
func (e *env) waitingOf(ctx context.Context, r *run.Receipt) string {
	if r.Changes == nil {
		return ""
	}
	now, err := e.waitingNow(ctx, r)
	switch {
	case errors.Is(err, overlay.ErrNone):
		return "decided about"
	case err != nil:
		return r.Changes.String() + " at its end; what waits now is not known: " + err.Error()
	case !now.Waiting():
		return "none wait"
	}
	return now.String() + "; review them: atoll sync review --run-id " + r.ID
}

// waitingNow counts what of a run waits now.
func (e *env) waitingNow(ctx context.Context, r *run.Receipt) (*run.Changes, error) {
	sync, err := backend.OpenSync(ctx, e.Env)
	if err != nil {
		return nil, err
	}
	all, err := sync.Trees(ctx, &api.SyncSubject{Run: r.ID})
	if err != nil {
		return nil, err
	}
	now := &run.Changes{}
	for i := range all.Trees {
		now.Add(&all.Trees[i])
	}
	return now, nil
}

func (e *env) printReceipt(r *run.Receipt, waiting string) {
	fact := func(name, value string) {
		if value != "" {
			fmt.Fprintf(e.Out, "%-10s %s\n", name, console.Printable(value))
		}
	}
	fact("run", r.ID)
	fact("agent", r.Variant)
	fact("account", r.Account)
	fact("model", r.Model)
	fact("sandbox", r.Sandbox)
	fact("image", r.Image)
	fact("started", r.Created.Format(time.RFC3339))
	fact("took", tookText(r))
	fact("state", runState(r))
	if r.Changes != nil {
		fact("directory", r.Changes.Directory)
		fact("changes", waiting)
	}
	fact("cost", fmt.Sprintf("%s · %d calls · %d tokens in, %d out", billText(&r.Bill), r.Bill.Calls, r.Bill.Input, r.Bill.Output))
	for name, note := range r.Notes {
		fact(name, note)
	}
	for _, w := range r.Warnings {
		fact("warning", w)
	}
	if r.Error != nil {
		fact("error", r.Error.Message)
	}
	if text := strings.TrimRight(r.Text, "\n"); text != "" {
		fmt.Fprintln(e.Out)
		for line := range strings.SplitSeq(text, "\n") {
			fmt.Fprintln(e.Out, console.Printable(line))
		}
	}
}
