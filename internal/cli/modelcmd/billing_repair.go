package modelcmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/console"
	money "github.com/atoll-run/atoll/internal/model/usage"
)

func newRepairCommand(e *env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "repair",
		Short:   "Mend a damaged journal of usage",
		Example: `  atoll billing repair`,
		Long: `Compare the journal of usage with the database. If it is damaged, copy it aside,
store every settled call in it that can be read and that the database does not have,
and begin a new one. Budgets hold again afterwards; calls that could not be read are
found by "atoll billing reconcile", which lists them as missing here.`,
		Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runRepair(cmd.Context(), e, asJSON) },
	}
	console.JSONFlag(cmd, &asJSON)
	return cmd
}

func runRepair(ctx context.Context, e *env, asJSON bool) error {
	a, err := e.Open(ctx)
	if err != nil {
		return e.ConfigError(err, asJSON)
	}
	r, err := a.Models.RepairUsage(ctx)
	switch {
	case err != nil:
		return err
	case asJSON:
		return e.PrintJSON(r)
	case r.Damage == "":
		fmt.Fprintln(e.Out, "The journal of usage is in order; nothing was changed.")
		return nil
	}
	fmt.Fprintf(e.Out, "%s\nIt is kept as %s.\n", r.Damage, r.Aside)
	fmt.Fprintf(e.Out, "%d settled calls could be read; %d of them, for %s, were not in the database and are now. %d calls under way go on.\n",
		r.Found, r.Stored, money.Dollars(r.Spent), r.Open)
	return nil
}
