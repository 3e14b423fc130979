package cli

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/config/trust"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/tool/diff"
)

type trustOptions struct{ yes, list, asJSON bool }

func newConfigTrustCommand(e *env) *cobra.Command {
	var o trustOptions
	cmd := &cobra.Command{
		Use:   "trust [PATH]",
		Short: "Show what a project's atoll.json5 asks for, and let it count",
		Long: `Show what a project's atoll.json5 asks for, and let it count.

PATH is a project or its atoll.json5 (default: the working directory). What can
reach the host, its secrets or the network is shown first; if the file was
trusted before, so is what changed. Trust is in the content: when the file, or a
program or path that it names, changes, it is asked for again. Worktrees of the
same git repository share it. With --json nothing is asked: the file is trusted
only with --force.`,
		Example: `  atoll config trust
  atoll config trust ~/project --force
  atoll config trust --list --json`,
		Args: atMostOne("PATH"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.list && (o.yes || len(args) > 0) {
				return usage(cmd, errors.New("--list takes no PATH and no --force"))
			}
			return runConfigTrust(e, projectArgument(args), o)
		},
	}
	cmd.Flags().BoolVar(&o.yes, "force", false, "trust without asking")
	oldSpelling(cmd, "yes", "force")
	cmd.Flags().BoolVar(&o.list, "list", false, "list the files that were trusted")
	jsonFlag(cmd, &o.asJSON)
	return cmd
}

func newConfigUntrustCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:     "untrust [PATH]",
		Short:   "Let a project's atoll.json5 only narrow again",
		Example: "  atoll config untrust ~/project",
		Args:    atMostOne("PATH"),
		RunE: func(_ *cobra.Command, args []string) error {
			env, err := e.environment()
			if err != nil {
				return err
			}
			path, known, err := trust.Forget(env, projectArgument(args))
			if err != nil {
				return withCode(exitUsage, err)
			}
			if !known {
				return withCode(exitUsage, errhint.With(fmt.Errorf("%s is not trusted", path), "see atoll config trust --list"))
			}
			fmt.Fprintf(e.Out, "%s is not trusted any more.\n", printable(path))
			return nil
		},
	}
}

// environment is where the configuration is looked for, with a state directory
// that is the person's alone.
func (e *env) environment() (config.Environment, error) {
	env, err := app.Environment(app.Options{Getenv: e.Getenv, ConfigPath: e.configPath})
	if err != nil {
		return env, err
	}
	notices, err := app.PrivateState(env)
	if err != nil {
		return env, withCode(exitUsage, err)
	}
	for _, n := range notices {
		e.notice(n)
	}
	return env, nil
}

func projectArgument(args []string) string {
	if len(args) == 1 {
		return args[0]
	}
	return "."
}

func runConfigTrust(e *env, name string, o trustOptions) error {
	env, err := e.environment()
	if err != nil {
		return err
	}
	if o.list {
		return e.listTrusted(env, o.asJSON)
	}
	r, err := trust.Examine(env, name)
	if err != nil {
		return e.configError(withCode(exitUsage, err), o.asJSON)
	}
	if !o.asJSON {
		e.printReview(r)
	}
	if err := e.settle(r, o); err != nil || !o.asJSON {
		return err
	}
	return e.printJSON(r)
}

// settle asks, and remembers the answer.
func (e *env) settle(r *trust.Review, o trustOptions) error {
	switch {
	case r.Trusted:
		return nil
	case o.asJSON && !o.yes:
		return nil
	case !o.yes && !e.agrees():
		return withCode(exitUsage, errhint.With(fmt.Errorf("not confirmed: %s is not trusted", r.Path), "answer y, or give --force"))
	}
	if err := r.Trust(); err != nil {
		return err
	}
	r.Trusted, r.Why = true, "trusted now"
	if !o.asJSON {
		fmt.Fprintf(e.Out, "%s is trusted.\n", printable(r.Path))
	}
	return nil
}

// agrees asks a person; no answer means no.
func (e *env) agrees() bool {
	fmt.Fprint(e.Err, "Trust this content? [y/N] ")
	answer, _ := bufio.NewReader(e.In).ReadString('\n')
	if !isInteractive(e.In) {
		fmt.Fprintln(e.Err) // no new line was typed
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return true
	}
	return false
}

// maxTrustDiff is how many bytes of a difference are shown.
const maxTrustDiff = 64 << 10

// printReview shows what the file asks for, the most powerful first.
func (e *env) printReview(r *trust.Review) {
	s := e.style()
	if r.Trusted {
		fmt.Fprintf(e.Out, "%s: %s\n", printable(r.Path), r.Why)
	} else {
		fmt.Fprintf(e.Out, "%s is not trusted: %s.\n", s.bold(printable(r.Path)), printable(r.Why))
	}
	if r.Earlier != nil && string(r.Earlier) != string(r.Content) {
		e.printSection("What changed since it was trusted:")
		text := diff.Unified("trusted", "now", r.Earlier, r.Content, maxTrustDiff)
		for line := range strings.Lines(text) {
			fmt.Fprintln(e.Out, "  "+printable(strings.TrimRight(line, "\n")))
		}
	}
	e.printRequests("Can reach the host, its secrets or the network:", r.Requests, true)
	e.printRequests("Also asked for:", r.Requests, false)
	if len(r.Named) > 0 {
		e.printSection("Programs and paths of the host that it names:")
	}
	for _, n := range r.Named {
		if !n.OfHost() {
			continue
		}
		fmt.Fprintf(e.Out, "  %s: %s\n", printable(n.Place), printable(n.Name))
	}
	if agent, err := r.Config.Resolve(""); err == nil {
		e.printSection(fmt.Sprintf("Trusted, it is the whole configuration in this directory; its sandbox.mode is %q.", agent.Sandbox.Mode))
	}
}

func (e *env) printSection(title string) { fmt.Fprintln(e.Out, "\n"+e.style().bold(title)) }

func (e *env) printRequests(title string, requests []config.Request, risky bool) {
	first := true
	for _, r := range requests {
		if r.Risky != risky {
			continue
		}
		if first {
			e.printSection(title)
			first = false
		}
		fmt.Fprintf(e.Out, "  line %d: %s\n", r.Line, printable(r.String()))
	}
}

func (e *env) listTrusted(env config.Environment, asJSON bool) error {
	list, err := trust.List(env)
	if err != nil {
		return err
	}
	if asJSON {
		return e.printJSON(map[string]any{"files": list})
	}
	if len(list) == 0 {
		fmt.Fprintln(e.Out, "No file is trusted.")
		return nil
	}
	t := newTable("FILE", "TRUSTED", "WHY")
	for _, entry := range list {
		t.add(printable(entry.Path), map[bool]string{true: "yes", false: "no"}[entry.Trusted], printable(entry.Why))
	}
	t.print(e.Out)
	return nil
}
