package runcmd

import (
	"errors"
	"fmt"
	"io/fs"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/contentpolicy"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/relay"
	"github.com/atoll-run/atoll/internal/relay/branch"
	"github.com/atoll-run/atoll/internal/relay/content"
	"github.com/atoll-run/atoll/internal/relay/deliver"
	"github.com/atoll-run/atoll/internal/run/execute"
)

// NewRelayCommand returns the command `atoll relay`.
func NewRelayCommand(c *console.Env) *cobra.Command {
	e := &env{c}
	cmd := &cobra.Command{
		Use: "relay", Short: "Judge, push and follow the commits of agents",
		Example: `  atoll relay status
  atoll relay show run-42 --patch`,
		Long: `Agents commit inside their sandboxes, without any credential. The relay takes the
commits out, judges what they contain, pushes one branch for each line of work and
opens or updates its pull request (docs/git-relay.md).`,
	}
	cmd.AddCommand(newRelayCheckCommand(e), newRelayStatusCommand(e), newRelayShowCommand(e), newRelayPushCommand(e), newRelayRetryCommand(e), newRelayPrepareCommand(e), newRelayTakeCommand(e), newRelayMirrorCommand(e))
	return cmd
}

func newRelayCheckCommand(e *env) *cobra.Command {
	var repo string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check [BASE..HEAD]",
		Short: "Judge commits of a local repository as those of an agent are",
		Long: `Judge commits of a local repository by the content policy that holds for agents.
Without a range: what HEAD has and relay.base has not. The repository is copied
first; nothing in it is executed or changed.

Exit codes: 0 they may be pushed, 3 they may not, or only when a person says so.`,
		Example: `  atoll relay check
  atoll relay check main..feature --repo ~/project
  atoll relay check HEAD~3..HEAD --json`,
		Args: console.AtMostOne("BASE..HEAD"),
		RunE: func(cmd *cobra.Command, args []string) error { return runRelayCheck(cmd, e, args, repo, asJSON) },
	}
	cmd.Flags().StringVar(&repo, "repo", ".", "`directory` of the repository")
	console.JSONFlag(cmd, &asJSON)
	return cmd
}

// relays is the relay of the configuration, for verbs that send nothing.
func (e *env) relays(asJSON bool) (*deliver.Relays, error) {
	settings, err := e.Load()
	if err != nil {
		return nil, e.ConfigError(err, asJSON)
	}
	return deliver.OpenRelays(settings)
}

func runRelayCheck(cmd *cobra.Command, e *env, args []string, repo string, asJSON bool) error {
	relays, err := e.relays(asJSON)
	if err != nil {
		return err
	}
	base, head := relays.Config.Base, "HEAD"
	if len(args) == 1 {
		var ok bool
		if base, head, ok = strings.Cut(args[0], ".."); !ok || base == "" || head == "" || strings.HasPrefix(head, ".") || strings.Contains(head, "..") {
			return console.Usage(cmd, fmt.Errorf("%q is no range: write BASE..HEAD", args[0]))
		}
	}
	report, err := relays.Check(cmd.Context(), repo, base, head)
	if err != nil {
		return err
	}
	if asJSON {
		err = e.PrintJSON(report)
	} else {
		e.printJudgement(report)
	}
	return console.FirstOf(err, verdictError(report))
}

func verdictError(report *content.Report) error {
	switch report.Verdict() {
	case contentpolicy.Blocked:
		return console.WithCode(console.ExitDenied, errors.New("these commits may not be pushed"))
	case contentpolicy.Approval:
		return console.WithCode(console.ExitDenied, errhint.With(errors.New("these commits need a person's approval"), "of an agent's run: `atoll relay push RUN --approve`"))
	}
	return nil
}

func (e *env) printJudgement(r *content.Report) {
	fmt.Fprintf(e.Out, "%d commits, %d changed files, %d bytes: ", len(r.Commits), r.Files, r.Bytes)
	if len(r.Findings) == 0 {
		fmt.Fprintln(e.Out, "nothing found")
		return
	}
	fmt.Fprintf(e.Out, "%d findings\n", len(r.Findings))
	t := console.NewTable("VERDICT", "RULE", "COMMIT", "PATH", "WHY")
	for _, f := range r.Findings {
		t.Add(string(f.Verdict), f.Rule, console.OrDash(shortCommit(f.Commit)), console.OrDash(f.Path), f.Detail)
	}
	t.Print(e.Out)
	if r.Truncated {
		fmt.Fprintln(e.Out, "There are more.")
	}
}

func shortCommit(id string) string { return id[:min(len(id), 12)] }

func newRelayStatusCommand(e *env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "status [RUN]",
		Short:   "Show what became of the commits of runs",
		Example: "  atoll relay status\n  atoll relay status run-42 --json",
		Args:    console.AtMostOne("RUN"),
		RunE: func(_ *cobra.Command, args []string) error {
			relays, err := e.relays(asJSON)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				return e.relayOf(relays, args[0], asJSON)
			}
			return e.allRelays(relays, asJSON)
		},
	}
	console.JSONFlag(cmd, &asJSON)
	return cmd
}

func newRelayShowCommand(e *env) *cobra.Command {
	var asJSON, patch bool
	cmd := &cobra.Command{
		Use:     "show RUN",
		Short:   "Show the commits of one run: what became of them, or what they change",
		Example: "  atoll relay show run-42\n  atoll relay show run-42 --patch | git am",
		Args:    console.ExactlyOne("RUN"),
		RunE: func(_ *cobra.Command, args []string) error {
			relays, err := e.relays(asJSON)
			if err != nil {
				return err
			}
			if patch {
				return e.printPatch(relays, args[0])
			}
			return e.relayOf(relays, args[0], asJSON)
		},
	}
	cmd.Flags().BoolVar(&patch, "patch", false, "print what the host rendered from them, and nothing else")
	console.JSONFlag(cmd, &asJSON)
	cmd.MarkFlagsMutuallyExclusive("patch", "json")
	return cmd
}

// printPatch prints the patch as it is; on a terminal so that nothing in it acts.
func (e *env) printPatch(relays *deliver.Relays, run string) error {
	r, err := loadRelay(relays, run)
	if err != nil {
		return err
	}
	text, err := relays.LoadPatch(r)
	if err != nil {
		return err
	}
	_, err = e.ForeignOut().Write(text)
	return err
}

func (e *env) allRelays(relays *deliver.Relays, asJSON bool) error {
	records, err := relays.List()
	if err != nil {
		return err
	}
	open, unread := relays.OpenWork()
	if unread != nil {
		e.Notice(unread.Error())
	}
	if asJSON {
		return e.PrintJSON(map[string]any{"relays": console.OrEmpty(records), "open": console.OrEmpty(open)})
	}
	if len(records)+len(open) == 0 {
		fmt.Fprintln(e.Out, "No commits of agents yet.")
		return nil
	}
	t := console.NewTable("RUN", "BRANCH", "STATE", "FINDINGS", "CHANGED", "PULL REQUEST")
	for _, w := range open {
		t.Add(w.Run, w.Branch.Branch(), openState(&w), "-", "-", "-")
	}
	for _, r := range records {
		findings := 0
		if r.Report != nil {
			findings = len(r.Report.Findings)
		}
		t.Add(r.Run, r.Work.Key.Branch(), string(r.Step), fmt.Sprint(findings), console.Ago(time.Since(r.Changed)), console.OrDash(r.PullURL))
	}
	t.Print(e.Out)
	return nil
}

// openState says where work is that was not taken yet.
func openState(w *deliver.OpenWork) string {
	if w.Container == "" {
		return "at work"
	}
	return "in container " + w.Container
}

func (e *env) relayOf(relays *deliver.Relays, run string, asJSON bool) error {
	r, err := loadRelay(relays, run)
	if err != nil {
		return err
	}
	if asJSON {
		return e.PrintJSON(r)
	}
	fmt.Fprintf(e.Out, "run     %s\nbranch  %s\nstate   %s\n", console.Printable(r.Run), r.Work.Key.Branch(), console.Printable(deliver.Note(r)))
	if r.Trouble != "" {
		fmt.Fprintf(e.Out, "trouble %s\n", console.Printable(r.Trouble))
	}
	for _, note := range r.Work.Notes {
		fmt.Fprintf(e.Out, "note    %s\n", console.Printable(note))
	}
	if r.Report != nil {
		e.printJudgement(r.Report)
	}
	return nil
}

func loadRelay(relays *deliver.Relays, word string) (*relay.Record, error) {
	run, err := pickRelay(relays, word)
	if err != nil {
		return nil, err
	}
	r, err := relays.Load(run)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errhint.With(fmt.Errorf("the relay has no commits of run %q", run), "`atoll relay status` lists what it has")
	}
	return r, err
}

func newRelayPushCommand(e *env) *cobra.Command {
	var approve, asJSON bool
	cmd := &cobra.Command{
		Use:   "push RUN",
		Short: "Push commits that were kept: of a run that failed, or that wait for a person",
		Example: `  atoll relay push run-42
  atoll relay push run-42 --approve`,
		Args: console.ExactlyOne("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.withRelays(cmd, asJSON, func(a *app.App, relays *deliver.Relays) error {
				r, err := loadRelay(relays, args[0])
				if err != nil {
					return err
				}
				if approve {
					if err := a.Commits.ApproveHold(cmd.Context(), relays, r, whoami()); err != nil {
						return console.WithCode(console.ExitDenied, err)
					}
				}
				if r.Step == relay.Blocked || r.Step == relay.Waiting {
					return verdictError(r.Report)
				}
				if err := a.Commits.ReleaseHold(cmd.Context(), r, whoami()); err != nil {
					return err
				}
				return e.sendRelay(cmd, a, r, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&approve, "approve", false, "say yes to what waits for a person")
	console.JSONFlag(cmd, &asJSON)
	return cmd
}

func newRelayRetryCommand(e *env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "retry",
		Short:   "Go on with everything that was interrupted",
		Example: `  atoll relay retry`,
		Args:    console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.withRelays(cmd, asJSON, func(a *app.App, _ *deliver.Relays) error {
				found, err := a.Commits.Resume(cmd.Context())
				return console.FirstOf(e.printRelays(found, asJSON, "Nothing was interrupted."), err)
			})
		},
	}
	console.JSONFlag(cmd, &asJSON)
	return cmd
}

func (e *env) withRelays(cmd *cobra.Command, asJSON bool, do func(*app.App, *deliver.Relays) error) error {
	a, err := e.Open(cmd.Context())
	if err != nil {
		return e.ConfigError(err, asJSON)
	}
	relays, err := a.Commits.AuditedRelays()
	if err != nil {
		return err
	}
	return do(a, relays)
}

func (e *env) sendRelay(cmd *cobra.Command, a *app.App, r *relay.Record, asJSON bool) error {
	sent := a.Commits.Send(cmd.Context(), r)
	if sent != nil && !asJSON {
		return sent
	}
	return console.FirstOf(e.printRelays([]*relay.Record{r}, asJSON, ""), sent)
}

// printRelays says what became of commits; none is the text if there are none.
func (e *env) printRelays(records []*relay.Record, asJSON bool, none string) error {
	if asJSON {
		return e.PrintJSON(map[string]any{"relays": console.OrEmpty(records)})
	}
	for _, r := range records {
		fmt.Fprintf(e.Out, "%s: %s\n", console.Printable(r.Run), console.Printable(deliver.Note(r)))
	}
	if len(records) == 0 {
		fmt.Fprintln(e.Out, none)
	}
	return nil
}

func whoami() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "unknown"
}

// branchFlags say which branch the commits of a run are for.
type branchFlags struct{ branch.Request }

func (f *branchFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.Branch, "branch", "", "put its commits on the branch sandbox/`NAME`, and open a pull request (relay.repository)")
	flags.StringVar(&f.WorkItem, "work-item", "", "`id` of the work item that names the branch")
	flags.StringVar(&f.StateKey, "state-key", "", "`key` of the conversation that names the branch, with --branch-mode thread")
	flags.StringVar(&f.Mode, "branch-mode", "", "thread: the conversation names the branch")
}

func (f *branchFlags) wanted() bool { return f.Request != branch.Request{Run: f.Run} }

// key decides; "" is no branch.
func (o *agentOptions) key() (string, error) {
	if o.runID == "" && o.wanted() {
		o.runID = execute.NewRunID()
	}
	o.Run = o.runID
	key, err := o.Key()
	if err != nil {
		return "", console.WithCode(console.ExitUsage, err)
	}
	return string(key), nil
}
