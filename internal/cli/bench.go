package cli

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/bench"
)

func newBenchCommand(e *env) *cobra.Command {
	var asJSON, check bool
	cmd := &cobra.Command{
		Use:   "bench NAME",
		Short: "Measure Atoll beside its peers, all sides in one run",
		Long:  "Measure Atoll beside its peers, all sides in one run.\n\n" + benchList(),
		Example: `  atoll bench ensure
  atoll bench ensure --json --check`,
		Args: exactlyOne("benchmark"),
		RunE: func(cmd *cobra.Command, args []string) error { return runBench(cmd, e, args[0], asJSON, check) },
	}
	cmd.Flags().BoolVar(&check, "check", false, "exit with code 1 if a claim does not hold")
	jsonFlag(cmd, &asJSON)
	cmd.AddCommand(newTimedDockerCommand(e), newFreshEnsureCommand(e), newFloorCommand(e), newProxyChildCommand(e), newProxyCallerCommand(e), newProxyFloorCommand(e))
	return cmd
}

func benchList() string {
	var b strings.Builder
	for _, x := range bench.All() {
		fmt.Fprintf(&b, "  %-10s %s\n", x.Name, x.About)
	}
	return b.String()
}

func (e *env) benchOptions() (bench.Options, error) {
	self, err := os.Executable()
	return bench.Options{Progress: e.Err, Getenv: e.Getenv, Config: e.configPath, Self: self}, err
}

func runBench(cmd *cobra.Command, e *env, name string, asJSON, check bool) error {
	o, err := e.benchOptions()
	if err != nil {
		return err
	}
	for _, b := range bench.All() {
		if b.Name != name {
			continue
		}
		report, err := b.Run(cmd.Context(), o)
		if err != nil {
			return err
		}
		return e.printBench(report, asJSON, check)
	}
	return usage(cmd, fmt.Errorf("there is no benchmark %q", name))
}

func (e *env) printBench(r *bench.Report, asJSON, check bool) error {
	if asJSON {
		if err := e.printJSON(r); err != nil {
			return err
		}
	} else {
		e.printBenchTables(r)
	}
	if failed := r.Failed(); check && len(failed) > 0 {
		return withCode(exitFailure, fmt.Errorf("%d of %d claims do not hold", len(failed), len(r.Ratios)))
	}
	return nil
}

func (e *env) printBenchTables(r *bench.Report) {
	number := func(f float64) string { return strconv.FormatFloat(f, 'f', 1, 64) }
	rows := newTable("MEASUREMENT", "UNIT", "N", "P50", "P95", "P99")
	for _, x := range r.Rows {
		rows.add(x.Name, x.Unit, strconv.Itoa(x.N), number(x.P50), number(x.P95), number(x.P99))
	}
	rows.print(e.Out)
	fmt.Fprintln(e.Out)
	claims := newTable("CLAIM", "VALUE", "WANTED", "HOLDS")
	for _, x := range r.Ratios {
		claims.add(x.Name, strconv.FormatFloat(x.Value, 'f', 2, 64), x.Want, holds(x))
	}
	claims.print(e.Out)
}

// holds says whether a claim does; a ratio that is only shown is none.
func holds(x bench.Ratio) string {
	switch {
	case x.Want == bench.Nothing:
		return bench.Nothing
	case x.OK:
		return "yes"
	}
	return "NO"
}

// newFreshEnsureCommand is the half of the benchmark that runs in processes of
// its own.
func newFreshEnsureCommand(e *env) *cobra.Command {
	var callOnly bool
	cmd := &cobra.Command{
		Use: "fresh-ensure", Hidden: true, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := e.benchOptions()
			if err != nil {
				return err
			}
			f, err := bench.MeasureFresh(cmd.Context(), o, callOnly)
			if err != nil {
				return err
			}
			return e.printJSON(f)
		},
	}
	cmd.Flags().BoolVar(&callOnly, "call-only", false, "measure only the engine call")
	return cmd
}

// newFloorCommand is what a benchmark runs inside a sandbox: COUNT starts of a
// small program in each of PARALLEL tasks.
func newFloorCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "floor COUNT PARALLEL", Hidden: true, Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			count, errCount := strconv.Atoi(args[0])
			parallel, errParallel := strconv.Atoi(args[1])
			if err := errors.Join(errCount, errParallel); err != nil {
				return usage(cmd, err)
			}
			f, err := bench.MeasureFloor(count, parallel)
			if err != nil {
				return err
			}
			return e.printJSON(f)
		},
	}
}

// newProxyChildCommand is the proxy that a benchmark measures, in a process of
// its own.
func newProxyChildCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "proxy-child DIRECTORY UPSTREAM GUEST", Hidden: true, Args: cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			return (&bench.ProxyChild{Dir: args[0], Upstream: args[1], Guest: args[2]}).Serve(cmd.Context(), e.In, e.Out)
		},
	}
}

// newProxyFloorCommand passes bytes on: the least that a benchmark compares the
// proxy with.
func newProxyFloorCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "proxy-floor LISTEN TARGET", Hidden: true, Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return (&bench.ProxyFloor{Listen: args[0], Target: args[1]}).Serve(cmd.Context(), e.In, e.Out)
		},
	}
}

// newProxyCallerCommand is what a benchmark runs inside a sandbox: CALLERS that
// call a model at ADDRESS.
func newProxyCallerCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "proxy-caller ADDRESS CALLERS HOW", Hidden: true, Args: cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			callers, err := strconv.Atoi(args[1])
			if err != nil {
				return usage(cmd, err)
			}
			return (&bench.ProxyCallers{Address: args[0], Count: callers, How: args[2]}).Call(cmd.Context(), e.In, e.Out)
		},
	}
}

// newTimedDockerCommand stands in for docker while a benchmark runs: it runs a
// docker, and notes how long that took.
func newTimedDockerCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "timed-docker LOG PROGRAM ARGUMENT…", Hidden: true, Args: cobra.MinimumNArgs(2), DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			code, err := bench.TimeDocker(cmd.Context(), args[0], args[1:])
			if err == nil && code != 0 {
				return withCode(code, nil)
			}
			return err
		},
	}
}
