package synccmd

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/gate/take"
)

func newTakeCommand(e *env) *cobra.Command {
	r := &api.SyncTake{}
	cmd := newVerb(e, &options{}, &cobra.Command{
		Use: "take [BRANCH]", Short: "Take the agent's commits to a branch of the repository", Args: console.AtMostOne("BRANCH"),
		Example: "  atoll sync take\n  atoll sync take fix/cart --approve --commit 2c26b46b68ff",
		Long: `Take the commits that were made inside to a local branch, which is made or moved
forward; never another way, and never the one that is checked out. They come through
a quarantine, no hook runs and no file of the working tree changes. Where git signs
commits, these are signed. Without a name the branch is called as the agent's.

Commits that change what other programs execute need --approve, secrets a --reason,
both the --commit that was looked at (atoll sync commits).`,
	}, func(v *verb, args []string) error {
		if len(args) == 1 {
			r.Branch = args[0]
		}
		return v.take(r)
	})
	flags := cmd.Flags()
	flags.StringVar(&r.From, "from", "", "`branch` inside (default: the one that is checked out there)")
	flags.StringVar(&r.Head, "commit", "", "last `commit` that was looked at, or its first 12 characters; others are refused")
	flags.BoolVar(&r.Approve, "approve", false, "say yes to what waits for a person")
	flags.StringVar(&r.Reason, "reason", "", "why it may pass, for the audit log")
	flags.BoolVar(&r.Unsigned, "unsigned", false, "do not sign, though git is configured to")
	return cmd
}

func (v *verb) take(r *api.SyncTake) error {
	if (r.Approve || r.Reason != "") && r.Head == "" {
		return console.Usage(v.cmd, errhint.With(errors.New("--approve and --reason are for commits that you looked at: name the last with --commit"), "`atoll sync commits` lists them"))
	}
	r.Subject = v.subject
	if err := v.wholeCommit(r); err != nil {
		return err
	}
	taken, err := v.sync.Take(v.ctx(), r)
	if err != nil {
		return err
	}
	if v.asJSON {
		return v.PrintJSON(taken)
	}
	v.printTaken(taken)
	return nil
}

// wholeCommit completes the beginning of a commit's id.
func (v *verb) wholeCommit(r *api.SyncTake) error {
	if r.Head == "" || len(r.Head) >= 40 {
		return nil
	}
	found, err := v.sync.Commits(v.ctx(), &v.subject)
	if err != nil {
		return err
	}
	for _, c := range found.Commits {
		if len(r.Head) >= minHash && strings.HasPrefix(c.ID, r.Head) {
			r.Head = c.ID
			return nil
		}
	}
	return errhint.With(fmt.Errorf("%w: %s is none of the commits", take.ErrChanged, console.Printable(r.Head)), "`atoll sync commits` lists them")
}

func (v *verb) printTaken(t *api.SyncTaken) {
	commits := number(t.Commits) + " commits"
	if t.Commits == 1 {
		commits = "1 commit"
	}
	what := "moved forward to"
	if t.Created {
		what = "made at"
	}
	fmt.Fprintf(v.Out, "took %s: branch %s %s %s\n", commits, console.Printable(t.Branch), what, shortID(t.Head))
	for _, note := range t.Notes {
		fmt.Fprintln(v.Out, console.Printable(note))
	}
}
