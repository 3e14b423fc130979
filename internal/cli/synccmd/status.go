package synccmd

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
)

func newStatusCommand(e *env) *cobra.Command {
	var all bool
	o := &options{}
	cmd := newVerb(e, o, &cobra.Command{
		Use: "status", Short: "Count what waits at the gate", Args: console.NoArgs,
		Example: "  atoll sync status\n  atoll sync status --all\n  atoll sync status --agent main --json",
		Long: `Show the overlays of the sandbox: what each is over, how many changes wait and with
which verdict. What is withheld (.git, ignored files, what is over a limit) is
counted, never hidden. Runs on the directory whose changes wait are listed with them;
--run-id shows one.`,
	}, func(v *verb, _ []string) error {
		now, err := v.status()
		if err != nil {
			return err
		}
		if v.asJSON {
			return v.PrintJSON(now)
		}
		for i := range now.Trees {
			v.printStatus(&now.Trees[i])
		}
		for i := range now.Runs {
			v.printRun(&now.Runs[i])
		}
		return nil
	})
	cmd.Flags().BoolVar(&all, "all", false, "count in every overlay of this installation, whoever it is of")
	ofOne := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if all {
			return e.printAll(cmd, o.asJSON)
		}
		return ofOne(cmd, args)
	}
	return cmd
}

// status is what waits at the gates of a subject.
type status struct {
	Trees []api.SyncTree `json:"trees"`
	Runs  []api.SyncRun  `json:"runs,omitempty"` // on the same directory
}

// status returns the overlays of the subject, and the runs on its directory, which
// may be all that there is.
func (v *verb) status() (*status, error) {
	now := &status{Trees: []api.SyncTree{}}
	if v.subject.Directory != "" {
		runs, err := v.sync.Runs(v.ctx(), &v.subject)
		if err != nil {
			return nil, err
		}
		now.Runs = runs.Runs
	}
	all, err := v.sync.Trees(v.ctx(), &v.subject)
	switch {
	case err == nil:
		now.Trees = all.Trees
	case len(now.Runs) == 0 || !errors.Is(err, overlay.ErrNone):
		return nil, err
	}
	return now, nil
}

// printRun prints what waits of one run.
func (v *verb) printRun(r *api.SyncRun) {
	what := (&run.Changes{Pass: r.Counts.Pass, Approval: r.Counts.Approval, Blocked: r.Counts.Blocked, Conflict: r.Counts.Conflict, Commits: r.Commits}).String()
	if r.UnderWay {
		what = "under way"
	}
	fmt.Fprintf(v.Out, "run      %s: %s (`atoll sync review --run-id %s`)\n", console.Printable(r.Run), what, console.Printable(r.Run))
}

// printStatus prints one overlay as a few lines.
func (v *verb) printStatus(t *api.SyncTree) {
	style := v.Style()
	fmt.Fprintf(v.Out, "%s  %s → %s  %s\n", style.Bold("overlay"), console.Printable(t.Base), console.Printable(t.Target), style.Dim(kindText(t)))
	fmt.Fprintf(v.Out, "waiting  %s\n", countsText(t))
	if t.HostChanged > 0 {
		fmt.Fprintf(v.Out, "host     %s changed since the agent began%s\n", files(t.HostChanged), partly(t))
	}
	if c := t.Commits; c != nil && len(c.Commits) > 0 {
		fmt.Fprintf(v.Out, "commits  %s (`atoll sync commits%s`, `atoll sync take%s`)\n", commitsText(c), v.ofRun(), v.ofRun())
	}
	if t.Note != "" {
		fmt.Fprintf(v.Out, "note     %s\n", console.Printable(t.Note))
	}
	if t.Hidden > 0 {
		fmt.Fprintf(v.Out, "hidden   %s with secrets, not visible inside\n", files(t.Hidden))
	}
	if t.Torn {
		fmt.Fprintln(v.Out, style.Alarm("torn")+"     the host ended without writing everything: look at the changes, then `atoll sync accept-torn` or `atoll sync reset`")
	}
	if len(t.Entries) > 0 {
		v.hint("atoll sync review")
	}
}

// partly says that not all files of the host were compared.
func partly(t *api.SyncTree) string {
	if !t.HostPartly {
		return ""
	}
	return ", or more: not all were compared"
}

func kindText(t *api.SyncTree) string {
	text := t.Kind
	if !t.Since.IsZero() {
		text += ", since " + clock(t.Since, time.Now())
	}
	return text
}

// clock returns a time of day, with the date if it is not today's.
func clock(at, now time.Time) string {
	at, now = at.Local(), now.Local()
	if at.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return at.Format("15:04")
	}
	return at.Format("2006-01-02 15:04")
}

func files(n int) string {
	if n == 1 {
		return "1 file"
	}
	return number(n) + " files"
}

// hint prints the commands that come next, to standard error.
func (e *env) hint(commands ...string) {
	for i := range commands {
		commands[i] = "`" + commands[i] + "`"
	}
	fmt.Fprintln(e.Err, "hint: "+strings.Join(commands, " · "))
}
