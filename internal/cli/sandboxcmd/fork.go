package sandboxcmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/console"
)

type forkOptions struct{ stop, asJSON bool }

func newForkCommand(e *env) *cobra.Command {
	var o forkOptions
	cmd := &cobra.Command{
		Use:   "fork SANDBOX [SESSION]",
		Short: "Make a sandbox with the same files as another",
		Long: `Make a sandbox with the same files as another: those of its root, if that may
be changed, and its private copy of the workspace. SANDBOX is the name of a
sandbox or of its session; the new one belongs to SESSION, by default a new
session of the same agent.

The files of a stopped sandbox's root are shared, not copied, and from then on
each changes its own. A running sandbox can be forked only where the file
system lets files share their blocks; --stop stops it first, if nobody works in
it. It starts again when it is next used.`,
		Example: `  atoll sandbox fork openclaw-sbx-agent-main-f331f052 --stop
  atoll sandbox fork agent:main agent:main:try-2 --stop
  atoll sandbox exec --session agent:main:try-2 -- git status`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return console.Usage(cmd, errors.New("no sandbox was given"))
			case len(args) > 2:
				return console.Usage(cmd, fmt.Errorf("unexpected argument %q", args[2]))
			case len(args) == 2 && args[1] == "":
				return console.Usage(cmd, errors.New("the session is empty"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return runFork(cmd.Context(), e, o, args) },
	}
	cmd.Flags().BoolVar(&o.stop, "stop", false, "stop the sandbox first, if nobody works in it")
	console.JSONFlag(cmd, &o.asJSON)
	return cmd
}

func runFork(ctx context.Context, e *env, o forkOptions, args []string) error {
	a, err := e.Open(ctx)
	if err != nil {
		return err
	}
	session := ""
	if len(args) > 1 {
		session = args[1]
	}
	from, err := pickSandbox(ctx, a, args[0])
	if err != nil {
		return err
	}
	done := e.Progress("forking " + from)
	forked, err := a.Fork(ctx, from, session, o.stop)
	done()
	if err != nil {
		return err
	}
	for _, n := range forked.Notices {
		e.Notice(n)
	}
	if o.asJSON {
		return e.PrintJSON(forked)
	}
	fmt.Fprintf(e.Out, "Forked: %s from %s (image %s)\n", forked.Name, forked.From, console.Printable(forked.Image))
	fmt.Fprintf(e.Out, "Use it: atoll sandbox exec --session %s -- COMMAND\n", console.Printable(forked.SessionKey))
	return nil
}
