package synccmd

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/cli/console"
)

func newUndoCommand(e *env) *cobra.Command {
	return newVerb(e, &options{}, &cobra.Command{
		Use: "undo ID", Short: "Put back what was applied", Args: console.ExactlyOne("ID"),
		Example: "  atoll sync undo s-7f3k\n  atoll sync undo s-7f3k --json",
		Long: `Put the host's files back exactly as they were before a batch was applied. A file
that changed since is named, and nothing is put back.`,
	}, func(v *verb, args []string) error {
		done, err := v.sync.Undo(v.ctx(), &api.SyncUndo{Subject: v.subject, ID: args[0]})
		if err != nil {
			return err
		}
		return v.printDone(done, "put back "+files(len(done.Files)))
	})
}

func newHistoryCommand(e *env) *cobra.Command {
	return newVerb(e, &options{}, &cobra.Command{
		Use: "history", Short: "List what was applied and put back", Args: console.NoArgs,
		Example: "  atoll sync history\n  atoll sync history --json",
	}, func(v *verb, _ []string) error {
		h, err := v.sync.History(v.ctx(), &v.subject)
		if err != nil {
			return err
		}
		if v.asJSON {
			return v.PrintJSON(h)
		}
		v.printHistory(h)
		return nil
	})
}

func (v *verb) printHistory(h *api.SyncHistory) {
	if len(h.Batches) == 0 {
		fmt.Fprintln(v.Out, "Nothing was applied yet.")
		return
	}
	t := console.NewTable("ID", "WHEN", "BY", "RESULT", "FILES", "")
	for i := range h.Batches {
		b := &h.Batches[i]
		result := b.Result
		if b.Undoes != "" {
			result += ", undoes " + b.Undoes
		}
		t.Add(b.ID, clock(b.Time, time.Now()), console.OrDash(b.By), result, number(len(b.Files)), firstOf(b.Files))
	}
	t.Print(v.Out)
}

// firstOf names some of many files.
func firstOf(files []string) string {
	const most = 3
	if len(files) <= most {
		return strings.Join(files, ", ")
	}
	return strings.Join(files[:most], ", ") + fmt.Sprintf(" and %d more", len(files)-most)
}
