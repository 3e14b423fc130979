package synccmd

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/cli/console"
)

func newDiffCommand(e *env) *cobra.Command {
	return newVerb(e, &options{}, &cobra.Command{
		Use: "diff [PATTERN…]", Short: "Show what changed, as unified diffs",
		Example: "  atoll sync diff\n  atoll sync diff README.md 'src/**'",
		Long: `Show what changed, as unified diffs from the host's files to the agent's. On a
terminal everything that could act on it is escaped.`,
	}, func(v *verb, args []string) error {
		t, err := v.state()
		if err != nil {
			return err
		}
		entries := sorted(t.Entries)
		if len(args) > 0 {
			if entries, err = v.choose(t, args); err != nil {
				return err
			}
		}
		return v.printDiffs(t, entries)
	})
}

func (v *verb) printDiffs(t *api.SyncTree, entries []api.SyncEntry) error {
	list := []api.SyncDiff{}
	for i := range entries {
		d, err := v.sync.Diff(v.ctx(), &v.subject, entries[i].Path)
		if err != nil {
			return err
		}
		list = append(list, *d)
		if !v.asJSON {
			v.printDiff(&entries[i], d)
		}
	}
	v.remember(t, entries)
	if v.asJSON {
		return v.PrintJSON(map[string]any{"diffs": list})
	}
	return nil
}

// printDiff prints a diff with a line about the entry before it.
func (v *verb) printDiff(e *api.SyncEntry, d *api.SyncDiff) {
	style := v.Style()
	line := columns{}.line(style, e)
	if e.Verdict == api.SyncBlocked {
		line += style.Dim("  hash " + shortID(e.SHA256))
	}
	fmt.Fprintln(v.Out, line)
	if !v.IsTerminal {
		_, _ = io.WriteString(v.Out, d.Diff) // Out keeps the error
		return
	}
	for line := range strings.Lines(d.Diff) {
		fmt.Fprintln(v.Out, diffLine(style, line))
	}
}

// diffLine returns one line of a diff for a terminal, escaped and coloured.
func diffLine(style console.Style, line string) string {
	text := console.Printable(strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", "    "))
	switch {
	case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"):
		return style.Bold(text)
	case strings.HasPrefix(line, "+"):
		return style.Good(text)
	case strings.HasPrefix(line, "-"):
		return style.Alarm(text)
	case strings.HasPrefix(line, "@@"):
		return style.Dim(text)
	}
	return text
}
