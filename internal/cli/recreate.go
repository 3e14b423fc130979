package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/advice"
	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/sandbox"
)

type recreateOptions struct {
	app.Selector
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
whose sandbox is gone are treated alike. Of an old registry only the row goes.`,
		Example: `  atoll sandbox recreate --agent main
  atoll sandbox recreate --all --force --discard`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runRecreate(cmd, e, o) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.All, "all", false, "every sandbox")
	flags.StringVar(&o.Session, "session", "", "the sandbox of this session `key`")
	flags.StringVar(&o.Agent, "agent", "", "every sandbox of this agent `id`")
	flags.BoolVar(&o.Browser, "browser", false, "browser sandboxes instead of command sandboxes")
	flags.BoolVar(&o.discard, "discard", false, "wipe the private copies too")
	flags.BoolVar(&o.force, "force", false, "do not ask")
	localFlag(cmd, e)
	jsonFlag(cmd, &o.asJSON)
	return cmd
}

func runRecreate(cmd *cobra.Command, e *env, o recreateOptions) error {
	if err := o.check(cmd); err != nil {
		return err
	}
	ctx := cmd.Context()
	o.Discard = o.discard
	desk, err := e.boxDesk(ctx)
	if err != nil {
		return e.configError(err, o.asJSON)
	}
	entries, err := desk.choose(ctx, o.Selector)
	if err != nil {
		return err
	}
	if len(entries) == 0 && !o.asJSON {
		fmt.Fprintln(e.Out, "Nothing to recreate: there is no such sandbox. `atoll sandbox list` shows what there is.")
		return nil
	}
	if len(entries) > 0 && !o.force {
		if err := e.confirm(entries, o.discard); err != nil {
			return err
		}
	}
	return e.recreate(ctx, desk, entries, o)
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
		return usage(cmd, errors.New("give exactly one of --all, --session and --agent"))
	}
	return cmp.Or(checkName(cmd, "session"), checkName(cmd, "agent"))
}

// confirm asks; no answer means no.
func (e *env) confirm(entries []*sandbox.Entry, discard bool) error {
	fmt.Fprintf(e.Err, "This removes %d sandbox(es):\n", len(entries))
	for _, entry := range entries {
		fmt.Fprintf(e.Err, "  %s (%s)\n", entry.ContainerName, printable(entry.SessionKey))
	}
	if discard {
		fmt.Fprintln(e.Err, "and wipes their private copies of the workspace.")
	}
	fmt.Fprint(e.Err, "Continue? [y/N] ")
	answer, _ := bufio.NewReader(e.In).ReadString('\n')
	if !isInteractive(e.In) {
		fmt.Fprintln(e.Err) // nobody typed a new line
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return advice.With(errors.New("not confirmed: nothing was removed"), "answer y, or give --force")
}

func (e *env) recreate(ctx context.Context, desk boxDesk, entries []*sandbox.Entry, o recreateOptions) error {
	results, failed := []app.Recreated{}, 0
	for _, entry := range entries {
		r := desk.recreate(ctx, entry, o.discard)
		results = append(results, r)
		if r.Err != nil {
			failed++
		}
		if !o.asJSON {
			e.printRecreated(r)
		}
	}
	if o.asJSON {
		if err := e.printJSON(map[string]any{"recreated": results, "failed": failed}); err != nil {
			return err
		}
	}
	if failed > 0 {
		return withCode(exitFailure, fmt.Errorf("%d of %d were not removed", failed, len(entries)))
	}
	return nil
}

func (e *env) printRecreated(r app.Recreated) {
	if r.Err != nil {
		fmt.Fprintf(e.Err, "%s: %s\n", r.Entry.ContainerName, joined(r.Error))
		if hint := recreateHint(r.Err); hint != "" {
			fmt.Fprintln(e.Err, "hint: "+printable(hint))
		}
		return
	}
	fmt.Fprintf(e.Out, "%s: %s\n", r.Entry.ContainerName, recreatedText(r))
	if len(r.Report.Moved) > 0 {
		fmt.Fprintf(e.Out, "  changed by the agent, moved to %s: %s\n", printable(r.Report.Aside), printable(listText(r.Report.Moved)))
	}
	if r.Report.Discarded {
		fmt.Fprintln(e.Out, "  its private copy was wiped")
	}
}

// recreatedText says what became of a sandbox, or of a copy without one.
func recreatedText(r app.Recreated) string {
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

func recreateHint(err error) string {
	if hint := advice.Of(err); hint != "" || !errors.Is(err, sandbox.ErrBusy) {
		return hint
	}
	return "something runs in it: wait for its end, or end it, and try again"
}
