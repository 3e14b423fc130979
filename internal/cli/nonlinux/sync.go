package nonlinux

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/client"
	"github.com/atoll-run/atoll/internal/terminal"
)

// syncer is the verb sync with the sandbox that it is about.
type syncer struct {
	*env
	of api.SyncSubject
}

func newSyncCommand(e *env) *cobra.Command {
	s := &syncer{env: e}
	cmd := &cobra.Command{
		Use: "sync", Short: "Decide about what agents changed, at the gateway's sync gate",
		Long: `Decide about what agents changed. The gateway applies it to the directory on its own
machine. The sandbox is that of a session, or of a directory of the gateway's machine.`,
		Example: "  atoll sync status --directory /srv/project",
	}
	flags := cmd.PersistentFlags()
	flags.StringVar(&s.of.Directory, "directory", "", "`directory` of the gateway's machine")
	flags.StringVar(&s.of.Run, "run", "", "`id` of a run on a directory")
	flags.StringVar(&s.of.Agent, "agent", "", "agent `id`")
	flags.StringVar(&s.of.Session, "session", "", "session `key`")
	cmd.AddCommand(s.newStatus(), s.newDiff(), s.newApprove(), s.newReject(), s.newHistory(), s.newUndo())
	return cmd
}

func (s *syncer) query(path string) api.SyncQuery {
	return api.SyncQuery{Directory: s.of.Directory, Run: s.of.Run, Agent: s.of.Agent, Session: s.of.Session, Path: path}
}

func (s *syncer) newStatus() *cobra.Command {
	return call(s.env, &cobra.Command{Use: "status", Short: "List what waits", Args: cobra.NoArgs, Example: "  atoll sync status"},
		func(ctx context.Context, c *client.Client, _ []string) (*api.SyncTrees, error) {
			return c.SyncTrees(ctx, s.query(""))
		}, s.showTrees)
}

func (s *syncer) showTrees(t *api.SyncTrees) error {
	rows := [][]string{{"VERDICT", "CHANGE", "PATH", "WHY"}}
	for i := range t.Trees {
		for _, entry := range t.Trees[i].Entries {
			var why []string
			for _, r := range entry.Reasons {
				why = append(why, r.Rule)
			}
			rows = append(rows, []string{entry.Verdict, entry.Kind, entry.Path, strings.Join(why, ", ")})
		}
	}
	return s.table(rows)
}

func (s *syncer) newDiff() *cobra.Command {
	return call(s.env, &cobra.Command{Use: "diff PATH", Short: "Show what changed in a file", Args: cobra.ExactArgs(1), Example: "  atoll sync diff main.go"},
		func(ctx context.Context, c *client.Client, args []string) (*api.SyncDiff, error) {
			return c.SyncDiff(ctx, s.query(args[0]))
		}, func(d *api.SyncDiff) error {
			_, err := fmt.Fprint(terminal.Harmless(s.Out), d.Diff)
			return err
		})
}

func (s *syncer) newApprove() *cobra.Command {
	var all, confirm bool
	cmd := &cobra.Command{
		Use: "approve (PATH… | --all-passing)", Short: "Apply changes that pass", Example: "  atoll sync approve --all-passing",
		Long: "Apply changes that pass to the gateway's directory, all or none, at the content that they have now.",
	}
	cmd.Flags().BoolVar(&all, "all-passing", false, "everything that passes")
	cmd.Flags().BoolVar(&confirm, "confirm-deletions", false, "apply also very many deletions")
	return call(s.env, cmd, func(ctx context.Context, c *client.Client, args []string) (*api.SyncApplied, error) {
		if all == (len(args) > 0) {
			return nil, wrong(errors.New("give paths, or --all-passing"), "`atoll sync status` lists what waits")
		}
		trees, err := c.SyncTrees(ctx, s.query(""))
		if err != nil {
			return nil, err
		}
		chosen, err := choose(trees, args)
		if err != nil || len(chosen) == 0 {
			return &api.SyncApplied{}, err
		}
		return c.ApproveSync(ctx, &api.SyncApproval{Subject: s.of, Choices: chosen, ConfirmDeletions: confirm})
	}, func(a *api.SyncApplied) error {
		_, err := fmt.Fprintf(terminal.Harmless(s.Out), "applied %d files %s\n", len(a.Files), a.ID)
		return err
	})
}

// choose returns the entries of the workspace that pass: all, or those of the paths,
// each of which must be one.
func choose(t *api.SyncTrees, paths []string) (chosen []api.SyncChoice, err error) {
	passing := map[string]api.SyncChoice{}
	for i := range t.Trees {
		for _, entry := range t.Trees[i].Entries {
			if t.Trees[i].Tree != 0 || entry.Verdict != api.SyncPass {
				continue
			}
			choice := api.SyncChoice{Path: entry.Path, SHA256: entry.SHA256}
			passing[entry.Path] = choice
			if len(paths) == 0 {
				chosen = append(chosen, choice)
			}
		}
	}
	for _, path := range paths {
		choice, ok := passing[path]
		if !ok {
			return nil, wrong(fmt.Errorf("%s is no change that passes", path), "`atoll sync status` lists what waits, and why")
		}
		chosen = append(chosen, choice)
	}
	return chosen, nil
}

func (s *syncer) newReject() *cobra.Command {
	return call(s.env, &cobra.Command{Use: "reject PATH…", Short: "Leave changes out until they become others", Args: cobra.MinimumNArgs(1), Example: "  atoll sync reject main.go"},
		func(ctx context.Context, c *client.Client, args []string) (*api.SyncDone, error) {
			return c.RejectSync(ctx, &api.SyncRejection{Subject: s.of, Paths: args})
		}, s.showDone)
}

func (s *syncer) newHistory() *cobra.Command {
	return call(s.env, &cobra.Command{Use: "history", Short: "List what was applied", Args: cobra.NoArgs, Example: "  atoll sync history"},
		func(ctx context.Context, c *client.Client, _ []string) (*api.SyncHistory, error) {
			return c.SyncHistory(ctx, s.query(""))
		}, func(h *api.SyncHistory) error {
			rows := [][]string{{"BATCH", "TIME", "BY", "RESULT", "FILES"}}
			for _, b := range h.Batches {
				rows = append(rows, []string{b.ID, b.Time.Format(time.DateTime), b.By, b.Result, fmt.Sprint(len(b.Files))})
			}
			return s.table(rows)
		})
}

func (s *syncer) newUndo() *cobra.Command {
	return call(s.env, &cobra.Command{Use: "undo BATCH", Short: "Put back what a batch changed", Args: cobra.ExactArgs(1), Example: "  atoll sync undo 3f2a"},
		func(ctx context.Context, c *client.Client, args []string) (*api.SyncDone, error) {
			return c.UndoSync(ctx, &api.SyncUndo{Subject: s.of, ID: args[0]})
		}, s.showDone)
}

func (s *syncer) showDone(d *api.SyncDone) error {
	_, err := fmt.Fprintf(terminal.Harmless(s.Out), "%d files %s\n", len(d.Files), d.Note)
	return err
}
