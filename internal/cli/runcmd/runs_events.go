package runcmd

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/backend"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/cli/runview"
	money "github.com/atoll-run/atoll/internal/model/usage"
	"github.com/atoll-run/atoll/internal/run"
)

type runsEventsOptions struct {
	after  int64
	follow bool
	asJSON bool
}

func newRunsEventsCommand(e *env) *cobra.Command {
	var o runsEventsOptions
	cmd := &cobra.Command{
		Use:   "events RUN",
		Short: "Show what happened in a run, also while it happens",
		Long: `Show what happened in a run: its steps, what the agent said and called, its usage.
With --json it is one object a line.`,
		Example: `  atoll runs events run-42
  atoll runs events run-42 -f --json | jq -r 'select(.type == "tool_call").call.name'`,
		Args: console.ExactlyOne("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error { return runRunsEvents(cmd.Context(), e, args[0], o) },
	}
	flags := cmd.Flags()
	flags.Int64Var(&o.after, "after", 0, "only those after event number `N`")
	flags.BoolVarP(&o.follow, "follow", "f", false, "go on until the run is over")
	flags.BoolVar(&o.asJSON, "json", false, "print JSON, one object a line")
	return cmd
}

func runRunsEvents(ctx context.Context, e *env, id string, o runsEventsOptions) error {
	b, err := backend.OpenRuns(ctx, e.Env)
	if err != nil {
		return e.ConfigError(err, o.asJSON)
	}
	return backend.WithRun(ctx, b, id, func(id string) error {
		return b.Events(ctx, id, o.after, o.follow, func(v *run.Event) error { return e.printEvent(v, o.asJSON) })
	})
}

func (e *env) printEvent(v *run.Event, asJSON bool) error {
	if !asJSON {
		_, err := fmt.Fprintf(e.Out, "%4d  %s  %-12s  %s\n", v.Seq, v.At.Format("15:04:05.000"), v.Type, eventText(v))
		return err
	}
	if err := json.MarshalWrite(e.ForeignOut(), v, jsontext.AllowInvalidUTF8(true)); err != nil {
		return err
	}
	_, err := io.WriteString(e.Out, "\n")
	return err
}

// eventText is what an event says, in a line.
func eventText(v *run.Event) string {
	switch {
	case v.Step != "":
		return string(v.Step)
	case v.Error != nil:
		return runview.Clip(v.Error.Code+": "+v.Error.Message, 300)
	case v.Bill != nil:
		return fmt.Sprintf("%s · %d calls", billText(v.Bill), v.Bill.Calls)
	case v.Usage != nil:
		return usageText(v)
	case v.Call != nil && v.Type == "tool_call":
		return runview.Clip(v.Call.Name+" "+v.Call.Args, 200)
	case v.Call != nil && v.IsError:
		return runview.Clip(fmt.Sprintf("%s failed, %.1f ms  %s", v.Call.Name, v.TookMs, runview.FirstLine(v.Text)), 200)
	case v.Call != nil:
		return runview.Clip(fmt.Sprintf("%s %.1f ms  %s", v.Call.Name, v.TookMs, runview.FirstLine(v.Text)), 200)
	}
	return runview.Clip(cmp.Or(v.Text, "-"), 300)
}

// usageText returns what a program says that it used.
func usageText(v *run.Event) string {
	text := fmt.Sprintf("%d tokens in, %d out", v.Usage.Input, v.Usage.Output)
	if v.MicroUSD > 0 {
		text += ", " + money.Dollars(v.MicroUSD) + " by its own account"
	}
	return text
}
