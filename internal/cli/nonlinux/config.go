package nonlinux

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/terminal"
)

func newConfigCommand(e *env) *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Check a configuration", Example: "  atoll config check atoll.json5"}
	cmd.AddCommand(
		&cobra.Command{
			Use: "check FILE", Short: "Name everything that is wrong with the file, at once", Args: cobra.ExactArgs(1),
			Example: "  atoll config check atoll.json5",
			RunE:    func(_ *cobra.Command, args []string) error { return e.checkConfig(args[0]) },
		},
		&cobra.Command{
			Use: "schema", Short: "Print the JSON Schema of the file, for editors", Args: cobra.NoArgs,
			Example: "  atoll config schema >atoll.schema.json",
			RunE:    func(*cobra.Command, []string) error { return e.printSchema() },
		})
	return cmd
}

// checkConfig checks what a file says. What a sandbox would refuse is known only
// where it is made.
func (e *env) checkConfig(path string) error {
	cwd, err := os.Getwd()
	if err != nil {
		return err
	}
	c, err := config.Load(path, config.Environment{Getenv: e.Getenv, Home: e.Home, Cwd: cwd, Explicit: path})
	if problems, ok := errors.AsType[config.Problems](err); ok {
		for _, p := range problems {
			fmt.Fprintln(terminal.Harmless(e.Err), p)
		}
		return wrong(fmt.Errorf("%s has %d problems", path, len(problems)), "")
	}
	if err != nil {
		return wrong(err, "name a file that exists and that you can read")
	}
	text := terminal.Harmless(e.Out)
	fmt.Fprintf(text, "%s: ok; what sandboxes refuse is checked on the machine that makes them\n", path)
	for _, w := range c.Warnings() {
		fmt.Fprintf(text, "warning: %s\n", w)
	}
	return nil
}

func (e *env) printSchema() error {
	schema, err := config.Schema()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Out, "%s\n", schema)
	return err
}
