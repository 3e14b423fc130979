package synccmd

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/cli/console"
)

func newRejectCommand(e *env) *cobra.Command {
	return newVerb(e, &options{}, &cobra.Command{
		Use: "reject PATTERN…", Short: "Leave changes out and take them back inside", Args: someArgs("PATTERN"),
		Example: "  atoll sync reject notes.txt\n  atoll sync reject 'tmp/**' --json",
		Long: `Leave changes out, and make inside the sandbox what the host has in their place; a
sandbox that is stopped is started for it. What the agent changes meanwhile stays
inside, is counted as rejected and is listed again when it becomes something else.
Nothing changes on the host.`,
	}, func(v *verb, args []string) error {
		t, err := v.state()
		if err != nil {
			return err
		}
		chosen, err := v.choose(t, args)
		if err != nil {
			return err
		}
		return v.reject(chosen)
	})
}

func (v *verb) reject(entries []api.SyncEntry) error {
	done, err := v.sync.Reject(v.ctx(), &api.SyncRejection{Subject: v.subject, Paths: paths(entries)})
	if err != nil {
		return err
	}
	return v.printDone(done, "rejected "+files(len(done.Files)))
}

func paths(entries []api.SyncEntry) []string {
	list := make([]string, 0, len(entries))
	for i := range entries {
		list = append(list, entries[i].Path)
	}
	return list
}

// printDone prints what a decision did.
func (v *verb) printDone(d *api.SyncDone, text string) error {
	if v.asJSON {
		d.Files = console.OrEmpty(d.Files)
		return v.PrintJSON(d)
	}
	if d.Note != "" {
		text += "; " + console.Printable(d.Note)
	}
	fmt.Fprintln(v.Out, text)
	return nil
}

// someArgs wants at least one argument of a kind.
func someArgs(kind string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return console.Usage(cmd, fmt.Errorf("no %s was given", kind))
		}
		return nil
	}
}
