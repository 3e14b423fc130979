package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/workspace"
)

func newSandboxCommand(e *env) *cobra.Command {
	cmd := &cobra.Command{Use: "sandbox", Short: "Explain, list, use and replace sandboxes"}
	cmd.AddCommand(newListCommand(e), newExplainCommand(e), newExecCommand(e), newRecreateCommand(e), newPruneCommand(e))
	return cmd
}

// listPage is how many sandboxes list shows unless asked for more.
const listPage = 100

type listOptions struct {
	all, browser bool
	limit        int
	asJSON       bool
}

func newListCommand(e *env) *cobra.Command {
	var o listOptions
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Show the sandboxes there are",
		Long: `Show the sandboxes there are, the last used first.

DRIFT names files that the agent changed in its private copy, and files whose
original changed since the copy was made: neither reaches the other side by
itself. atoll sandbox recreate brings a copy up to date.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runList(cmd.Context(), e, o) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.all, "all", false, fmt.Sprintf("show all, not only the last %d", listPage))
	flags.IntVar(&o.limit, "limit", listPage, "show at most `N`")
	flags.BoolVar(&o.browser, "browser", false, "show only browser sandboxes")
	jsonFlag(cmd, &o.asJSON)
	return cmd
}

func runList(ctx context.Context, e *env, o listOptions) error {
	a, err := e.open(ctx)
	if err != nil {
		return e.configError(err, o.asJSON)
	}
	if o.all || o.asJSON && o.limit == listPage {
		o.limit = 0
	}
	list, total, err := a.List(ctx, o.limit)
	if err != nil {
		return err
	}
	containers, browsers := split(list)
	if o.asJSON {
		return e.printJSON(map[string]any{"containers": containers, "browsers": browsers, "total": total})
	}
	if o.browser {
		containers = nil
	}
	e.printList(append(containers, browsers...), total)
	return nil
}

func split(list []app.Listed) (containers, browsers []app.Listed) {
	containers, browsers = []app.Listed{}, []app.Listed{}
	for _, l := range list {
		if l.Kind == sandbox.KindBrowser {
			browsers = append(browsers, l)
		} else {
			containers = append(containers, l)
		}
	}
	return containers, browsers
}

func (e *env) printList(list []app.Listed, total int) {
	if len(list) == 0 {
		fmt.Fprintln(e.Out, "No sandboxes. `atoll run -- COMMAND` makes one.")
		return
	}
	t := newTable("NAME", "STATE", "IMAGE", "AGE", "IDLE", "SESSION", "DRIFT", "NOTE")
	running, now := 0, time.Now()
	for _, l := range list {
		if l.Running {
			running++
		}
		t.add(l.ContainerName, stateText(l.State), imageText(l), ago(now.Sub(time.UnixMilli(l.CreatedAtMs))),
			ago(now.Sub(time.UnixMilli(l.LastUsedAtMs))), l.SessionKey, driftText(l.Drift), l.Problem)
	}
	t.print(e.Out)
	fmt.Fprintf(e.Out, "\n%d of %d shown, %d running\n", len(list), total, running)
}

func stateText(s sandbox.State) string {
	if s == "" {
		return "-"
	}
	return string(s)
}

func imageText(l app.Listed) string {
	if !l.ImageMatch {
		return l.Image + " (not the configured one)"
	}
	return l.Image
}

func driftText(d workspace.Drift) string {
	if d.None() {
		return "-"
	}
	var text string
	for _, part := range []struct {
		what  string
		files []string
	}{{"changed", d.Modified}, {"deleted", d.Deleted}, {"stale", d.Stale}} {
		if len(part.files) > 0 {
			text += part.what + " " + listText(part.files) + " "
		}
	}
	return text
}

func newExecCommand(e *env) *cobra.Command {
	var o commandOptions
	cmd := &cobra.Command{
		Use:   "exec [flags] -- COMMAND [ARGUMENT…]",
		Short: "Run a command in a session's sandbox, making it if needed",
		Example: `  atoll sandbox exec -- ls -la
  atoll sandbox exec --agent work --timeout 10s -- sh -c 'sleep 1; echo done'`,
		Args: minimumArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := e.open(cmd.Context())
			if err != nil {
				return err
			}
			session, err := e.provide(cmd.Context(), a, o.who())
			if err != nil {
				return err
			}
			defer session.Release()
			return e.runCommand(cmd.Context(), session, o, args)
		},
	}
	o.add(cmd)
	return cmd
}
