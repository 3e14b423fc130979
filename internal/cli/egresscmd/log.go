package egresscmd

import (
	"cmp"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/console"
)

func newLogCommand(e *env) *cobra.Command {
	var f filter
	var lines int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "log",
		Short: "Show connections of sandboxes, and what was denied",
		Example: `  atoll egress log --denied
  atoll egress log --agent main --since 2h --json`,
		Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, found, err := e.find(cmd, &f, lines, asJSON)
			if err != nil {
				return err
			}
			if asJSON {
				return e.PrintJSON(map[string]any{"records": console.OrEmpty(found)})
			}
			e.printLog(found)
			return nil
		},
	}
	f.add(cmd, "7d")
	cmd.Flags().BoolVar(&f.denied, "denied", false, "only what was refused")
	console.LimitFlag(cmd, &lines, 50, maxRecords)
	console.JSONFlag(cmd, &asJSON)
	return cmd
}

func (e *env) printLog(found []record) {
	if len(found) == 0 {
		fmt.Fprintln(e.Out, "Nothing is recorded.")
		return
	}
	t := console.NewTable("TIME", "SANDBOX", "EVENT", "TARGET", "MODE", "OUT", "IN", "RULE OR REASON")
	for i := range found {
		r := &found[i]
		t.Add(r.Time.Local().Format(time.DateTime), r.Sandbox, r.Event, r.target(), console.OrDash(r.Mode), fmt.Sprint(r.BytesOut), fmt.Sprint(r.BytesIn),
			cmp.Or(r.Reason, r.Denied, r.Rule))
	}
	t.Print(e.Out)
}
