package sandboxcmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// The verbs about sandboxes that stand at the top too, under the names that docker
// gave them.

// NewTopPsCommand returns the command `atoll ps`.
func NewTopPsCommand(c *console.Env) *cobra.Command {
	e := &env{c}
	cmd := newListCommand(e)
	cmd.Use, cmd.Aliases = "ps", []string{"ls", "list"}
	cmd.Long += "\n\nIt is atoll sandbox list. The commands in a sandbox are shown by atoll sandbox ps."
	cmd.Example = "  atoll ps\n  atoll ps --json"
	return cmd
}

// NewTopExecCommand returns the command `atoll exec`.
func NewTopExecCommand(c *console.Env) *cobra.Command {
	e := &env{c}
	var o commandOptions
	cmd := &cobra.Command{
		Use:   "exec [flags] SANDBOX COMMAND [ARGUMENT…]",
		Short: "Run a command in a sandbox that there is",
		Long: `Run a command in a sandbox that there is, starting it if needed. SANDBOX is a name
as ps shows it, the session, or the beginning of either. With -- in the place of
SANDBOX the sandbox is that of --agent and --session, made if needed, as atoll
sandbox exec does.

The exit code is the command's.`,
		Example: `  atoll exec agent-main ls -la
  atoll exec -it agent-main sh
  atoll exec --session agent:main:try-2 -- git status`,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() != 0 && len(args) == 1 {
				return console.Usage(cmd, errhint.With(errors.New("no command was given"), "write it after the sandbox, as in `atoll exec "+args[0]+" ls -la`"))
			}
			return console.SomeCommand(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			if cmd.ArgsLenAtDash() == 0 {
				return runExec(cmd.Context(), e, o, args)
			}
			if o.SubjectFlags != (console.SubjectFlags{}) {
				return console.Usage(cmd, errhint.With(errors.New("SANDBOX says which one already"), "leave --agent, --session and --account out, or write -- before the command"))
			}
			return e.execIn(cmd.Context(), o, args)
		},
	}
	o.add(cmd)
	return cmd
}

// execIn runs a command in the sandbox that the first word names.
func (e *env) execIn(ctx context.Context, o commandOptions, words []string) error {
	a, err := e.Open(ctx)
	if err != nil {
		return err
	}
	name, err := pickSandbox(ctx, a, words[0])
	if err != nil {
		return err
	}
	session, err := e.sessionNamed(ctx, console.SubjectFlags{}, name)
	if err != nil {
		return err
	}
	defer session.Release()
	argv := words[1:]
	if argv[0] == "--" && len(argv) > 1 {
		argv = argv[1:]
	}
	return e.runAudited(ctx, a, session, o, argv)
}

// NewTopLogsCommand returns the command `atoll logs`.
func NewTopLogsCommand(c *console.Env) *cobra.Command {
	e := &env{c}
	var o logsOptions
	cmd := &cobra.Command{
		Use:   "logs SANDBOX [COMMAND] [flags]",
		Short: "Show what a command in a sandbox wrote",
		Long: `Show what a command in a sandbox wrote, its standard output and standard error
each on ours: of the one whose id is COMMAND, or of the last that was started in
the background. Ids are shown by atoll sandbox ps; the beginning of one is enough.`,
		Example: `  atoll logs agent-main
  atoll logs agent-main 01JC -f`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 2 {
				return console.Usage(cmd, fmt.Errorf("unexpected argument %q", args[2]))
			}
			return someSandbox(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return e.logsOf(cmd.Context(), o, args) },
	}
	o.addOutput(cmd)
	return cmd
}

// logsOf shows the output of a command in the sandbox that the first word names.
func (e *env) logsOf(ctx context.Context, o logsOptions, words []string) error {
	handles, err := e.attach(ctx, console.SubjectFlags{}, words[:1])
	if err != nil {
		return err
	}
	defer releaseAll(handles)
	if len(words) == 2 {
		return e.showLogs(ctx, o, handles, words[1])
	}
	last, err := lastCommand(ctx, handles[0])
	if err != nil {
		return err
	}
	return e.showLogs(ctx, o, handles, last.ID)
}

// lastCommand is the command that was started last in the background of a sandbox.
func lastCommand(ctx context.Context, h *sandbox.Handle) (*machine.Process, error) {
	list, err := h.Machine.Processes(ctx)
	if err != nil {
		return nil, err
	}
	var last *machine.Process
	for i := range list {
		if p := &list[i]; p.Background && (last == nil || p.Started.After(last.Started)) {
			last = p
		}
	}
	if last == nil {
		return nil, errhint.With(fmt.Errorf("no command was started in the background of %s", h.Name), "`atoll sandbox ps "+h.Name+"` shows what runs")
	}
	return last, nil
}

// ListIsLs makes ls another word for list in every group.
func ListIsLs(cmd *cobra.Command) {
	for _, child := range cmd.Commands() {
		ListIsLs(child)
	}
	if cmd.Name() == "list" && !cmd.HasAlias("ls") {
		cmd.Aliases = append(cmd.Aliases, "ls")
	}
}
