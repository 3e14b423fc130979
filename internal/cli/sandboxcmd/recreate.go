package sandboxcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/backend"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

type recreateOptions struct {
	provide.Selector
	discard, force, asJSON bool
}

func newRecreateCommand(e *env) *cobra.Command {
	var o recreateOptions
	cmd := &cobra.Command{
		Use:   "recreate (--all | --session KEY | --agent ID)",
		Short: "Remove sandboxes so that the next use makes them anew",
		Long: `Remove sandboxes so that the next use makes them anew, with the configuration
as it is now.

A private copy is brought up to date: seed files that nobody changed are copied
again; those the agent changed are moved aside, and you are told where to.
Everything else in the copy stays. With --discard the whole copy is wiped. Copies
whose sandbox is gone are treated alike. Of an old registry only the row goes.

Commands in the background end with their sandbox: they are named in the question,
and in the answer with --force. A sandbox that somebody works in is left alone.`,
		Example: `  atoll sandbox recreate --agent main
  atoll sandbox recreate --all --force --discard`,
		Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runRecreate(cmd, e, o) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.All, "all", false, "every sandbox")
	flags.StringVar(&o.Session, "session", "", "the sandbox of this session `key`")
	flags.StringVar(&o.Agent, "agent", "", "every sandbox of this agent `id`")
	flags.BoolVar(&o.Browser, "browser", false, "browser sandboxes instead of command sandboxes")
	flags.BoolVar(&o.discard, "discard", false, "wipe the private copies too")
	flags.BoolVar(&o.force, "force", false, "do not ask")
	backend.LocalFlag(cmd, e.Env)
	console.JSONFlag(cmd, &o.asJSON)
	return cmd
}

func runRecreate(cmd *cobra.Command, e *env, o recreateOptions) error {
	if err := o.check(cmd); err != nil {
		return err
	}
	ctx := cmd.Context()
	o.Discard = o.discard
	b, err := backend.OpenSandboxes(ctx, e.Env)
	if err != nil {
		return e.ConfigError(err, o.asJSON)
	}
	entries, err := b.Choose(ctx, o.Selector)
	if err != nil {
		return err
	}
	if len(entries) == 0 && !o.asJSON {
		fmt.Fprintln(e.Out, "Nothing to recreate: there is no such sandbox. `atoll sandbox list` shows what there is.")
		return nil
	}
	running, err := e.whatRuns(ctx, entries)
	if err != nil {
		return e.ConfigError(err, o.asJSON)
	}
	if len(entries) > 0 && !o.force {
		if err := e.confirm(entries, running, o.discard); err != nil {
			return err
		}
	}
	return e.recreate(ctx, &recreation{recreateOptions: o, b: b, running: running}, entries)
}

// check wants exactly one selector.
func (o *recreateOptions) check(cmd *cobra.Command) error {
	given := 0
	for _, is := range []bool{o.All, cmd.Flags().Changed("session"), cmd.Flags().Changed("agent")} {
		if is {
			given++
		}
	}
	if given != 1 {
		return console.Usage(cmd, errors.New("give exactly one of --all, --session and --agent"))
	}
	return cmp.Or(console.CheckName(cmd, "session"), console.CheckName(cmd, "agent"))
}

// whatRuns are the commands in sandboxes, by their names.
func (e *env) whatRuns(ctx context.Context, entries []*sandbox.Entry) (map[string][]runningCommand, error) {
	a, err := e.Open(ctx)
	if err != nil {
		return nil, err
	}
	running := map[string][]runningCommand{}
	for _, entry := range entries {
		running[entry.ContainerName] = e.commandsIn(ctx, a, entry)
	}
	return running, nil
}

// confirm asks; no answer means no.
func (e *env) confirm(entries []*sandbox.Entry, running map[string][]runningCommand, discard bool) error {
	fmt.Fprintf(e.Err, "This removes %d sandbox(es):\n", len(entries))
	for _, entry := range entries {
		fmt.Fprintf(e.Err, "  %s (%s)\n", entry.ContainerName, console.Printable(entry.SessionKey))
		for _, c := range running[entry.ContainerName] {
			fmt.Fprintf(e.Err, "    and ends %s\n", console.Printable(c.String()))
		}
	}
	if discard {
		fmt.Fprintln(e.Err, "and wipes their private copies of the workspace.")
	}
	if e.Confirms("Continue?") {
		return nil
	}
	return errhint.With(errors.New("not confirmed: nothing was removed"), "answer y, or give --force")
}

// recreation is a call of recreate at work.
type recreation struct {
	recreateOptions
	b       backend.Sandboxes
	running map[string][]runningCommand
}

// recreated is what became of one sandbox, and of the commands in it.
type recreated struct {
	provide.Recreated
	Ended []runningCommand `json:"ended"`
}

// one recreates one sandbox.
func (o *recreation) one(ctx context.Context, entry *sandbox.Entry) recreated {
	r := recreated{Recreated: o.b.Recreate(ctx, entry, o.discard), Ended: console.OrEmpty(o.running[entry.ContainerName])}
	if r.Err != nil {
		r.Err = inUse(r.Err, r.Ended, "`atoll rm --force "+entry.ContainerName+"`")
		r.Error, r.Ended = r.Err.Error(), []runningCommand{}
	}
	return r
}

func (e *env) recreate(ctx context.Context, o *recreation, entries []*sandbox.Entry) error {
	results, failed := []recreated{}, 0
	for _, entry := range entries {
		r := o.one(ctx, entry)
		results = append(results, r)
		if r.Err != nil {
			failed++
		}
		if !o.asJSON {
			e.printRecreated(r)
		}
	}
	if o.asJSON {
		if err := e.PrintJSON(map[string]any{"recreated": results, "failed": failed}); err != nil {
			return err
		}
	}
	if failed > 0 {
		return console.WithCode(console.ExitFailure, fmt.Errorf("%d of %d were not removed", failed, len(entries)))
	}
	return nil
}

func (e *env) printRecreated(r recreated) {
	if r.Err != nil {
		fmt.Fprintf(e.Err, "%s: %s\n", r.Entry.ContainerName, console.Joined(r.Error))
		if hint := errhint.Of(r.Err); hint != "" {
			fmt.Fprintln(e.Err, "hint: "+console.Printable(hint))
		}
		return
	}
	fmt.Fprintf(e.Out, "%s: %s\n", r.Entry.ContainerName, recreatedText(r.Recreated))
	for _, c := range r.Ended {
		fmt.Fprintf(e.Out, "  ended: %s\n", console.Printable(c.String()))
	}
	if len(r.Report.Moved) > 0 {
		fmt.Fprintf(e.Out, "  changed by the agent, moved to %s: %s\n", console.Printable(r.Report.Aside), console.Printable(listText(r.Report.Moved)))
	}
	if r.Report.Discarded {
		fmt.Fprintln(e.Out, "  its private copy was wiped")
	}
}

// recreatedText says what became of a sandbox, or of a copy without one.
func recreatedText(r provide.Recreated) string {
	switch {
	case r.Entry.Imported:
		return "its row was removed; the container belongs to another program"
	case r.Entry.Backend == "" && r.Report.Discarded:
		return "has no sandbox"
	case r.Entry.Backend == "":
		return "has no sandbox; its private copy was brought up to date"
	}
	return "removed; the next use makes it anew"
}
