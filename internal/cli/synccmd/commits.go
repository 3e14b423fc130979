package synccmd

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/cli/console"
)

func newCommitsCommand(e *env) *cobra.Command {
	return newVerb(e, &options{}, &cobra.Command{
		Use: "commits", Short: "List commits made inside that the repository has not", Args: console.NoArgs,
		Example: "  atoll sync commits\n  atoll sync commits --json",
		Long: `List the commits that the agent made and the host's repository has on no branch,
each with its verdict. A sandbox that is stopped is started for it: git runs inside.`,
	}, func(v *verb, _ []string) error {
		found, err := v.sync.Commits(v.ctx(), &v.subject)
		if err != nil {
			return err
		}
		if v.asJSON {
			return v.PrintJSON(found)
		}
		v.printCommits(found)
		return nil
	})
}

func (v *verb) printCommits(c *api.SyncCommits) {
	if len(c.Commits) == 0 {
		fmt.Fprintln(v.Out, "No commits that the repository has not.")
	}
	style := v.Style()
	for i := range c.Commits {
		commit := &c.Commits[i]
		age := "-"
		if !commit.Time.IsZero() {
			age = console.Ago(time.Since(commit.Time))
		}
		fmt.Fprintf(v.Out, "%s  %s  %s  %s\n", paintVerdict(style, cmp.Or(commit.Verdict, api.SyncPass)), shortID(commit.ID), console.Printable(commit.Subject),
			style.Dim(console.Printable(commit.Author)+", "+age+", "+files(commit.Files)))
		for _, r := range commit.Reasons {
			fmt.Fprintln(v.Out, "          "+style.Dim(console.Joined(cmp.Or(r.Detail, r.Rule))))
		}
	}
	if len(c.Others) > 0 {
		fmt.Fprintln(v.Out, "also on branches "+console.Printable(strings.Join(c.Others, ", "))+" (`atoll sync take --from BRANCH`)")
	}
	v.hintTake(c)
}

// hintTake names the command that takes the commits.
func (v *verb) hintTake(c *api.SyncCommits) {
	switch {
	case len(c.Commits) == 0 || c.Verdict == api.SyncBlocked:
	case c.Verdict == api.SyncApprove:
		v.hint("atoll sync take --approve --commit " + shortID(c.Head))
	default:
		v.hint("atoll sync take")
	}
}

func commitsText(c *api.SyncCommits) string {
	text := number(len(c.Commits)) + " not in the repository"
	if c.Branch != "" {
		text = number(len(c.Commits)) + " on " + console.Printable(c.Branch)
	}
	if c.Verdict != "" {
		text += ", " + c.Verdict
	}
	return text
}

// shortID returns as much of a hash as names it.
func shortID(id string) string { return id[:min(len(id), minHash)] }
