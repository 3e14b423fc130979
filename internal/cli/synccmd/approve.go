package synccmd

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/errhint"
)

func newApproveCommand(e *env) *cobra.Command {
	var allPassing, confirm bool
	cmd := newVerb(e, &options{}, &cobra.Command{
		Use: "approve (PATTERN… | --all-passing)", Short: "Apply changes that pass to the host",
		Example: `  atoll sync approve 'src/**' old/legacy.go
  atoll sync approve --all-passing --confirm-deletions`,
		Long: `Apply changes to the host's files, all of them or none. A pattern is a path, a
directory, or has * and **. What was shown last (review, diff) is what is approved:
a file that changed since is refused. What needs an override, is blocked or in
conflict is left, listed, and exits with 3.

Many deletions, above 100 or a fifth of the files, need --confirm-deletions.`,
	}, func(v *verb, args []string) error { return v.approve(args, allPassing, confirm) })
	cmd.Flags().BoolVar(&allPassing, "all-passing", false, "everything that passes")
	cmd.Flags().BoolVar(&confirm, "confirm-deletions", false, "apply also very many deletions")
	return cmd
}

func (v *verb) approve(patterns []string, allPassing, confirm bool) error {
	if allPassing == (len(patterns) > 0) {
		return console.Usage(v.cmd, errors.New("give patterns, or --all-passing"))
	}
	t, err := v.state()
	if err != nil {
		return err
	}
	chosen := sorted(t.Entries)
	if !allPassing {
		if chosen, err = v.choose(t, patterns); err != nil {
			return err
		}
	}
	passing, left := split(chosen)
	if err := v.checkShown(t, passing); err != nil {
		return err
	}
	if allPassing {
		left = nil
	}
	return v.apply(passing, left, confirm)
}

// split returns the entries that pass, and the others.
func split(entries []api.SyncEntry) (passing, left []api.SyncEntry) {
	for i := range entries {
		if entries[i].Verdict == api.SyncPass {
			passing = append(passing, entries[i])
		} else {
			left = append(left, entries[i])
		}
	}
	return passing, left
}

// apply applies the passing entries and says what is left.
func (v *verb) apply(passing, left []api.SyncEntry, confirm bool) error {
	applied := &api.SyncApplied{Files: []string{}}
	if len(passing) > 0 {
		var err error
		if applied, err = v.sync.Approve(v.ctx(), &api.SyncApproval{Subject: v.subject, Choices: choices(passing), ConfirmDeletions: confirm}); err != nil {
			return err
		}
	}
	if v.asJSON {
		if err := v.PrintJSON(map[string]any{"applied": applied, "left": console.OrEmpty(left)}); err != nil {
			return err
		}
	} else {
		v.printApplied(applied)
		v.printLeft(left)
	}
	if len(left) > 0 {
		return v.leftError(left)
	}
	return nil
}

func choices(entries []api.SyncEntry) []api.SyncChoice {
	list := make([]api.SyncChoice, 0, len(entries))
	for i := range entries {
		list = append(list, api.SyncChoice{Path: entries[i].Path, SHA256: entries[i].SHA256})
	}
	return list
}

func (v *verb) printApplied(a *api.SyncApplied) {
	if len(a.Files) == 0 {
		fmt.Fprintln(v.Out, "Nothing was applied.")
		return
	}
	fmt.Fprintf(v.Out, "applied %s to %s   (undo: atoll sync undo %s%s)\n", files(len(a.Files)), console.Printable(a.Base), a.ID, v.ofRun())
}

func (v *verb) printLeft(left []api.SyncEntry) {
	c := columnsFor(left)
	for i := range left {
		fmt.Fprintln(v.Out, c.line(v.Style(), &left[i]))
	}
}

// leftError says that entries were not applied, and the command for the first.
func (v *verb) leftError(left []api.SyncEntry) error {
	first := &left[0]
	hint := "`atoll sync diff " + quoted(first.Path) + v.ofRun() + "` shows the first"
	if first.Verdict == api.SyncApprove {
		hint = "`atoll sync override " + quoted(first.Path) + v.ofRun() + " --reason TEXT` lets the first pass"
	}
	return errhint.With(fmt.Errorf("%w: %s left", errRefused, files(len(left))), hint)
}
