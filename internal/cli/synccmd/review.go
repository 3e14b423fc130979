package synccmd

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/cli/console"
)

func newReviewCommand(e *env) *cobra.Command {
	var plain bool
	cmd := newVerb(e, &options{}, &cobra.Command{
		Use: "review", Short: "Look at every change and decide", Args: console.NoArgs,
		Example: "  atoll sync review\n  atoll sync review --json",
		Long: `Show every change with its verdict, deletions first. On a terminal, keys decide:
d shows the diff, a approves, r rejects, A approves everything that passes, n and p
move, u takes a mark back, q applies what is marked, after a question. Otherwise, or
with --plain, it is a list.`,
	}, func(v *verb, _ []string) error {
		t, err := v.state()
		if err != nil {
			return err
		}
		if v.asJSON {
			v.remember(t, t.Entries)
			return v.PrintJSON(t)
		}
		if screen, ok := v.screen(); ok && !plain && len(t.Entries) > 0 {
			return v.reviewOn(screen, t)
		}
		v.printReview(t)
		v.remember(t, t.Entries)
		return nil
	})
	cmd.Flags().BoolVar(&plain, "plain", false, "print a list, also on a terminal")
	return cmd
}

// screen returns the terminal that a person sees and types at.
func (v *verb) screen() (*os.File, bool) {
	screen, ok := v.Out.Writer.(*os.File)
	if !ok || !v.IsTerminal || !console.IsInteractive(v.In) || v.Getenv("TERM") == "dumb" {
		return nil, false
	}
	return screen, term.IsTerminal(int(screen.Fd()))
}

// printReview prints the list without a terminal.
func (v *verb) printReview(t *api.SyncTree) {
	entries := sorted(t.Entries)
	fmt.Fprintf(v.Out, "%s: %s\n", console.Printable(t.Target), countsText(t))
	c := columnsFor(entries)
	for i := range entries {
		fmt.Fprintln(v.Out, c.line(v.Style(), &entries[i]))
	}
	if hints := nextCommands(entries); len(hints) > 0 {
		v.hint(hints...)
	}
}

// nextCommands returns the commands that decide about entries.
func nextCommands(entries []api.SyncEntry) (hints []string) {
	passing, left := split(entries)
	if len(passing) > 0 {
		hints = append(hints, "atoll sync approve --all-passing")
	}
	for i := range left {
		if left[i].Verdict == api.SyncApprove {
			hints = append(hints, "atoll sync override "+quoted(left[i].Path)+" --reason TEXT")
			break
		}
	}
	if len(left) > 0 {
		hints = append(hints, "atoll sync diff "+quoted(left[0].Path))
	}
	return hints
}

// reviewOn lets a person decide with keys, and carries the decisions out.
func (v *verb) reviewOn(screen *os.File, t *api.SyncTree) error {
	m := newModel(t, v.Style(), func(path string) (string, error) {
		d, err := v.sync.Diff(v.ctx(), &v.subject, path)
		if err != nil {
			return "", err
		}
		return d.Diff, nil
	})
	if err := v.runScreen(screen, m); err != nil {
		return err
	}
	v.remember(t, t.Entries)
	return v.carryOut(m.decisions())
}

// carryOut rejects, overrides and applies what was marked.
func (v *verb) carryOut(d decisions) error {
	if len(d.rejected) > 0 {
		if err := v.reject(d.rejected); err != nil {
			return err
		}
	}
	for _, o := range d.overridden {
		applied, err := v.sync.Override(v.ctx(), &api.SyncOverride{Subject: v.subject, Path: o.entry.Path, SHA256: o.entry.SHA256, Reason: o.reason})
		if err != nil {
			return err
		}
		v.printApplied(applied)
	}
	if len(d.approved) > 0 {
		return v.apply(d.approved, nil, d.confirmed)
	}
	if len(d.rejected)+len(d.overridden) == 0 {
		fmt.Fprintln(v.Out, "Nothing was decided.")
	}
	return nil
}
