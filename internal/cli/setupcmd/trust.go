package setupcmd

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/config/trust"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
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
		Args: console.AtMostOne("PATH"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.list && (o.yes || len(args) > 0) {
				return console.Usage(cmd, errors.New("--list takes no PATH and no --force"))
			}
			return runConfigTrust(e, projectArgument(args), o)
		},
	}
	cmd.Flags().BoolVar(&o.yes, "force", false, "trust without asking")
	console.OldSpelling(cmd, "yes", "force")
	cmd.Flags().BoolVar(&o.list, "list", false, "list the files that were trusted")
	console.JSONFlag(cmd, &o.asJSON)
	return cmd
}

func newConfigUntrustCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:     "untrust [PATH]",
		Short:   "Let a project's atoll.json5 only narrow again",
		Example: "  atoll config untrust ~/project",
		Args:    console.AtMostOne("PATH"),
		RunE: func(_ *cobra.Command, args []string) error {
			env, err := e.environment()
			if err != nil {
				return err
			}
			path, known, err := trust.Forget(env, projectArgument(args))
			if err != nil {
				return console.WithCode(console.ExitUsage, err)
			}
			if !known {
				return console.WithCode(console.ExitUsage, errhint.With(fmt.Errorf("%s is not trusted", path), "see atoll config trust --list"))
			}
			fmt.Fprintf(e.Out, "%s is not trusted any more.\n", console.Printable(path))
			return nil
		},
	}
}

// environment is where the configuration is looked for, with a state directory
// that is the person's alone.
func (e *env) environment() (config.Environment, error) {
	env, err := provide.Environment(provide.LoadOptions{Getenv: e.Getenv, ConfigPath: e.ConfigPath})
	if err != nil {
		return env, err
	}
	notices, err := provide.PrivateState(env)
	if err != nil {
		return env, console.WithCode(console.ExitUsage, err)
	}
	for _, n := range notices {
		e.Notice(n)
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
		return e.ConfigError(console.WithCode(console.ExitUsage, err), o.asJSON)
	}
	if !o.asJSON {
		e.printReview(r)
	}
	if err := e.settle(r, o); err != nil || !o.asJSON {
		return err
	}
	return e.PrintJSON(r)
}

// settle asks, and remembers the answer.
func (e *env) settle(r *trust.Review, o trustOptions) error {
	switch {
	case r.Trusted:
		return nil
	case o.asJSON && !o.yes:
		return nil
	case !o.yes && !e.Confirms("Trust this content?"):
		return console.WithCode(console.ExitUsage, errhint.With(fmt.Errorf("not confirmed: %s is not trusted", r.Path), "answer y, or give --force"))
	}
	if err := r.Trust(); err != nil {
		return err
	}
	r.Trusted, r.Why = true, "trusted now"
	if !o.asJSON {
		fmt.Fprintf(e.Out, "%s is trusted.\n", console.Printable(r.Path))
	}
	return nil
}

// maxTrustDiff is how many bytes of a difference are shown.
const maxTrustDiff = 64 << 10

// printReview shows what the file asks for, the most powerful first.
func (e *env) printReview(r *trust.Review) {
	s := e.Style()
	if r.Trusted {
		fmt.Fprintf(e.Out, "%s: %s\n", console.Printable(r.Path), r.Why)
	} else {
		fmt.Fprintf(e.Out, "%s is not trusted: %s.\n", s.Bold(console.Printable(r.Path)), console.Printable(r.Why))
	}
	if r.Earlier != nil && string(r.Earlier) != string(r.Content) {
		e.printSection("What changed since it was trusted:")
		text := diff.Unified("trusted", "now", r.Earlier, r.Content, maxTrustDiff)
		for line := range strings.Lines(text) {
			fmt.Fprintln(e.Out, "  "+console.Printable(strings.TrimRight(line, "\n")))
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
		fmt.Fprintf(e.Out, "  %s: %s\n", console.Printable(n.Place), console.Printable(n.Name))
	}
	if agent, err := r.Config.Resolve(""); err == nil {
		e.printSection(fmt.Sprintf("Trusted, it is the whole configuration in this directory; its sandbox.mode is %q.", agent.Sandbox.Mode))
	}
}

func (e *env) printSection(title string) { fmt.Fprintln(e.Out, "\n"+e.Style().Bold(title)) }

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
		fmt.Fprintf(e.Out, "  line %d: %s\n", r.Line, console.Printable(r.String()))
	}
}

func (e *env) listTrusted(env config.Environment, asJSON bool) error {
	list, err := trust.List(env)
	if err != nil {
		return err
	}
	if asJSON {
		return e.PrintJSON(map[string]any{"files": list})
	}
	if len(list) == 0 {
		fmt.Fprintln(e.Out, "No file is trusted.")
		return nil
	}
	t := console.NewTable("FILE", "TRUSTED", "WHY")
	for _, entry := range list {
		t.Add(console.Printable(entry.Path), map[bool]string{true: "yes", false: "no"}[entry.Trusted], console.Printable(entry.Why))
	}
	t.Print(e.Out)
	return nil
}
