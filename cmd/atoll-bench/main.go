// Atoll-bench measures Atoll beside its peers, all sides in one run.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/cmd/atoll-bench/bench"
	"github.com/atoll-run/atoll/internal/errhint"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := newCommand().ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if code, ok := errors.AsType[exitCode](err); ok {
		return int(code)
	}
	fmt.Fprintln(os.Stderr, "error:", err)
	if hint := errhint.Of(err); hint != "" {
		fmt.Fprintln(os.Stderr, "hint:", hint)
	}
	return 1
}

// exitCode ends the program with the code of another one.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// program holds what the flags say.
type program struct {
	config        string
	backend       string
	asJSON, check bool
}

func newCommand() *cobra.Command {
	p := &program{}
	cmd := &cobra.Command{
		Use:   "atoll-bench NAME",
		Short: "Measure Atoll beside its peers, all sides in one run",
		Long:  "Measure Atoll beside its peers, all sides in one run. The program atoll lies beside this one.\n\n" + list(),
		Example: `  atoll-bench ensure
  atoll-bench ensure --json --check`,
		Args:          cobra.ExactArgs(1),
		RunE:          func(cmd *cobra.Command, args []string) error { return p.measure(cmd, args[0]) },
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.PersistentFlags().StringVar(&p.config, "config", "", "configuration `file`")
	cmd.Flags().StringVar(&p.backend, "backend", "", "`backend` whose sandboxes claim measures (default linux)")
	cmd.Flags().BoolVar(&p.check, "check", false, "exit with code 1 if a claim does not hold")
	cmd.Flags().BoolVar(&p.asJSON, "json", false, "print JSON")
	cmd.AddCommand(p.helpers()...)
	return cmd
}

// list names every benchmark.
func list() string {
	var b strings.Builder
	for _, x := range bench.All() {
		fmt.Fprintf(&b, "  %-12s %s\n", x.Name, x.About)
	}
	return b.String()
}

func (p *program) options() (bench.Options, error) {
	self, err := os.Executable()
	return bench.Options{
		Progress: os.Stderr, Getenv: os.Getenv, Config: p.config, Self: self, Atoll: filepath.Join(filepath.Dir(self), "atoll"), Backend: p.backend,
	}, err
}

// measure runs one benchmark and prints its report.
func (p *program) measure(cmd *cobra.Command, name string) error {
	o, err := p.options()
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
		return p.show(cmd.OutOrStdout(), report)
	}
	return errhint.With(fmt.Errorf("there is no benchmark %q", name), "`atoll-bench --help` lists them")
}
