package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/app"
)

func newDoctorCommand(e *env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what this machine can enforce, what is missing, and the command that fixes it",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return runDoctor(cmd.Context(), e, asJSON) },
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func runDoctor(ctx context.Context, e *env, asJSON bool) error {
	a, err := e.open(ctx)
	if err != nil {
		return e.configError(err, asJSON)
	}
	done := e.progress("examining")
	checks := a.Examine(ctx)
	done()
	if asJSON {
		if err := e.printJSON(map[string]any{"checks": checks}); err != nil {
			return err
		}
	} else {
		e.printChecks(checks)
	}
	for _, c := range checks {
		if c.Status == app.CheckFailed {
			return withCode(exitFailure, nil)
		}
	}
	return nil
}

func (e *env) printChecks(checks []app.Check) {
	s := e.style()
	marks := map[app.CheckStatus]string{
		app.CheckOK: s.good("ok  "), app.CheckWarning: s.warn("warn"), app.CheckFailed: s.alarm("FAIL"),
	}
	for _, c := range checks {
		fmt.Fprintf(e.Out, "%s  %-22s %s\n", marks[c.Status], c.Name, joined(c.Detail))
		if c.Fix != "" {
			fmt.Fprintf(e.Out, "      %-22s %s %s\n", "", s.bold("fix:"), joined(c.Fix))
		}
	}
}
