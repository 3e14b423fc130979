package sandboxcmd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/backend"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/sandbox/workspace"
)

// listPage is how many sandboxes list shows unless asked for more.
const listPage = 100

// maxListed is the most that list can be asked for by --limit.
const maxListed = 1_000_000

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
		Example: `  atoll sandbox list
  atoll sandbox list --limit 10 --json`,
		Long: `Show the sandboxes there are, the last used first.

DRIFT names files that the agent changed in its private copy, and files whose
original changed since the copy was made: neither reaches the other side by
itself. atoll sandbox recreate brings a copy up to date.`,
		Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runList(cmd.Context(), e, o) },
	}
	flags := cmd.Flags()
	flags.BoolVarP(&o.all, "all", "a", false, fmt.Sprintf("show all, not only the last %d", listPage))
	console.LimitFlag(cmd, &o.limit, listPage, maxListed)
	flags.BoolVar(&o.browser, "browser", false, "show only browser sandboxes")
	backend.LocalFlag(cmd, e.Env)
	console.JSONFlag(cmd, &o.asJSON)
	return cmd
}

func runList(ctx context.Context, e *env, o listOptions) error {
	b, err := backend.OpenSandboxes(ctx, e.Env)
	if err != nil {
		return e.ConfigError(err, o.asJSON)
	}
	if o.all || o.asJSON && o.limit == listPage {
		o.limit = 0
	}
	list, total, err := b.Sandboxes(ctx, o.limit)
	if err != nil {
		return err
	}
	containers, browsers := split(list)
	if o.browser {
		containers, total = []provide.Listed{}, len(browsers)
	}
	if o.asJSON {
		return e.PrintJSON(map[string]any{"containers": containers, "browsers": browsers, "total": total})
	}
	e.printList(append(containers, browsers...), total)
	return nil
}

func split(list []provide.Listed) (containers, browsers []provide.Listed) {
	containers, browsers = []provide.Listed{}, []provide.Listed{}
	for _, l := range list {
		if l.Kind == sandbox.KindBrowser {
			browsers = append(browsers, l)
		} else {
			containers = append(containers, l)
		}
	}
	return containers, browsers
}

func (e *env) printList(list []provide.Listed, total int) {
	if len(list) == 0 {
		fmt.Fprintln(e.Out, "No sandboxes. `atoll run -- COMMAND` makes one.")
		return
	}
	remote := slices.ContainsFunc(list, isRemote)
	t := console.NewTable(withSaved(remote, "SAVED", "NAME", "STATE", "IMAGE", "AGE", "IDLE", "SESSION", "DRIFT", "NOTE")...)
	now := time.Now()
	var notes console.Footnotes
	for _, l := range list {
		t.Add(withSaved(remote, savedText(&l, now), l.ContainerName, stateText(l.State), imageText(l), console.Ago(now.Sub(time.UnixMilli(l.CreatedAtMs))),
			idleText(&l, now), console.Shortened(console.Printable(l.SessionKey), sessionWidth), driftText(l.Drift), notes.Mark(l.Problem))...)
	}
	t.Print(e.Out)
	running := len(slices.DeleteFunc(list, func(l provide.Listed) bool { return !l.Running }))
	fmt.Fprintf(e.Out, "\n%d of %d shown, %d running\n", t.Len(), total, running)
	notes.Print(e.Out)
}

const (
	sessionWidth = 60 // how much of a session key list shows
)

// idleText is how long nothing has used a sandbox.
func idleText(l *provide.Listed, now time.Time) string {
	if l.InUse {
		return "in use"
	}
	return console.Ago(now.Sub(time.UnixMilli(l.LastUsedAtMs)))
}

// isRemote reports whether the workspace of a sandbox is on another machine.
func isRemote(l provide.Listed) bool {
	return l.Backend == provide.BackendKubernetes || l.LastSavedAtMs > 0
}

// withSaved puts the cell of SAVED after IDLE, where a sandbox is on another machine.
func withSaved(remote bool, saved string, cells ...string) []string {
	if !remote {
		return cells
	}
	return slices.Insert(cells, 5, saved)
}

// savedText is how long ago the workspace of a sandbox on another machine was brought home;
// "-" if it never was, or is on this machine.
func savedText(l *provide.Listed, now time.Time) string {
	if l.LastSavedAtMs == 0 {
		return "-"
	}
	return console.Ago(now.Sub(time.UnixMilli(l.LastSavedAtMs)))
}

func stateText(s sandbox.State) string {
	if s == "" {
		return "-"
	}
	return string(s)
}

func imageText(l provide.Listed) string {
	if !l.ImageMatch {
		return l.Image + " (not the configured one)"
	}
	return l.Image
}

func driftText(d workspace.Drift) string {
	if d.None() {
		return "-"
	}
	var parts []string
	for _, part := range []struct {
		what  string
		files []string
	}{{"changed", d.Modified}, {"deleted", d.Deleted}, {"stale", d.Stale}} {
		if len(part.files) > 0 {
			parts = append(parts, part.what+" "+listText(part.files))
		}
	}
	return strings.Join(parts, "; ")
}
