package nonlinux

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/terminal"
)

func newDoctorCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Say what this machine lacks", Args: cobra.NoArgs,
		Long:    "Say what this machine lacks, and whether the gateway is ready. The exit code is 1 if it is not.",
		Example: "  atoll doctor --gateway https://atoll.example.org",
		RunE:    func(cmd *cobra.Command, _ []string) error { return e.doctor(cmd.Context()) },
	}
}

func (e *env) doctor(ctx context.Context) error {
	text := terminal.Harmless(e.Out)
	fmt.Fprintf(text, "warn  sandboxes  they need Linux, and this is %s; a gateway on a Linux machine makes them\n", e.System)
	to, err := e.target()
	if err == nil {
		err = e.ready(ctx)
	}
	if err != nil {
		fmt.Fprintf(text, "FAIL  gateway    not ready: %v\n", err)
		return err
	}
	_, err = fmt.Fprintf(text, "ok    gateway    ready at %s\n", to.URL)
	return err
}

// ready reports whether the gateway accepts work.
func (e *env) ready(ctx context.Context) error {
	c, err := e.open()
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Ready(ctx)
	return err
}
