package setupcmd

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/backend"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/doctor"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/gateway/serve"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// NewDoctorCommand returns the command `atoll doctor`.
func NewDoctorCommand(c *console.Env) *cobra.Command {
	e := &env{c}
	var asJSON, fix bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what this machine can enforce, what is missing, and the command that fixes it",
		Long: `Say what this machine can enforce, what is missing, and the command that fixes it.

The rings are those that "atoll sandbox verify" tries in a live sandbox; here the
host is asked for each. Then come the limits that you could set without an
engine, the machinery that the default agent's sandboxes get, its image, and
every agent's settings. The exit code is 1 if something is in the way.`,
		Example: `  atoll doctor
  atoll doctor --fix
  atoll doctor --json`,
		Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDoctor(cmd.Context(), e, asJSON, fix) },
	}
	cmd.Flags().BoolVar(&fix, "fix", false, "mend what can be mended; what keeps this user from making sandboxes without an engine takes sudo")
	console.JSONFlag(cmd, &asJSON)
	return cmd
}

func runDoctor(ctx context.Context, e *env, asJSON, fix bool) error {
	mended := false
	var refused error // what root would have to mend; the rest is mended all the same
	if fix {
		mended, refused = runFix(ctx, e)
	}
	a, err := e.Open(ctx)
	if err != nil {
		return e.ConfigError(err, asJSON)
	}
	done := e.Progress("examining")
	checks := append(a.Doctor().Examine(ctx), e.examineGateway(ctx)...)
	done()
	if fix && e.mend(ctx, checks) {
		checks, mended = append(a.Doctor().Examine(ctx), e.examineGateway(ctx)...), true
	}
	if fix && !mended && refused == nil {
		fmt.Fprintln(e.Err, "nothing was found that could be mended without a decision of yours")
	}
	if asJSON {
		if err := e.PrintJSON(map[string]any{"checks": checks}); err != nil {
			return err
		}
	} else {
		e.printChecks(checks)
	}
	for _, c := range checks {
		if c.Status == doctor.CheckFailed && refused == nil {
			return console.WithCode(console.ExitFailure, nil)
		}
	}
	return refused
}

// readyPatience is how long a gateway has to look at its parts.
const readyPatience = 10 * time.Second

// examineGateway asks the gateway that is running, if there is one, whether it can
// do its work.
func (e *env) examineGateway(ctx context.Context) []doctor.Check {
	g, err := backend.RunningGateway(ctx, e.Env)
	if g == nil && err == nil {
		return nil
	}
	const name = "gateway"
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, readyPatience)
		defer cancel()
		_, err = g.Client.Ready(ctx)
	}
	if err != nil {
		err = backend.ProblemError(err)
		return []doctor.Check{{Name: name, Status: doctor.CheckFailed, Detail: "not ready: " + err.Error(), Fix: errhint.Of(err)}}
	}
	return []doctor.Check{{Name: name, Status: doctor.CheckOK, Detail: "ready at " + serve.SocketPath(g.Settings)}}
}

func (e *env) printChecks(checks []doctor.Check) {
	s := e.Style()
	marks := map[doctor.CheckStatus]string{
		doctor.CheckOK: s.Good("ok  "), doctor.CheckWarning: s.Warn("warn"), doctor.CheckFailed: s.Alarm("FAIL"),
	}
	for _, c := range checks {
		fmt.Fprintf(e.Out, "%s  %-22s %s\n", marks[c.Status], c.Name, console.Joined(c.Detail))
		if c.Fix != "" {
			fmt.Fprintf(e.Out, "      %-22s %s %s\n", "", s.Bold("fix:"), console.Joined(c.Fix))
		}
	}
}

// mend does what findings say that this user can do, and reports whether there
// was anything.
func (e *env) mend(ctx context.Context, checks []doctor.Check) (something bool) {
	for i := range checks {
		did, err := checks[i].Repair(ctx)
		switch {
		case err != nil:
			e.Notice(fmt.Sprintf("%s could not be mended: %v", checks[i].Name, err))
		case did:
			something = true
			e.Notice(fmt.Sprintf("%s was mended (%s)", checks[i].Name, checks[i].Fix))
		}
	}
	return something
}

// runFix does as root what stands in the way of sandboxes without an engine, and
// reports whether anything does.
func runFix(ctx context.Context, e *env) (bool, error) {
	program, err := os.Executable()
	if err != nil {
		return false, err
	}
	what, script := provide.HostFix(program)
	if script == "" {
		return false, nil
	}
	argv := []string{"sh", "-c", script}
	if os.Geteuid() != 0 {
		argv = append([]string{"sudo"}, argv...)
	}
	fmt.Fprintf(e.Err, "%s is in the way; running: %s\n", what, strings.Join(argv, " "))
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = e.In, e.Err, e.Err
	if err := cmd.Run(); err != nil {
		return false, errhint.With(fmt.Errorf("%s: %w", what, err), "have an administrator run: "+script)
	}
	return true, nil
}
