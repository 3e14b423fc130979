package sandboxcmd

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
)

type psOptions struct {
	console.SubjectFlags
	all    bool
	asJSON bool
}

func newPsCommand(e *env) *cobra.Command {
	var o psOptions
	cmd := &cobra.Command{
		Use:   "ps [NAME]",
		Short: "Show the commands that run in a session's sandboxes",
		Example: `  atoll sandbox ps
  atoll sandbox ps agent-main --json`,
		Long: `Show the commands that run in a session's sandboxes, and those that were started
in the background and have ended. NAME is a sandbox, as list shows
it, or the beginning of its name.

Nothing is made or started: a sandbox that does not run has no commands.`,
		Args: console.AtMostOne("sandbox"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Check(cmd); err != nil {
				return err
			}
			return runPs(cmd.Context(), e, o, args)
		},
	}
	o.Add(cmd)
	cmd.Flags().BoolVarP(&o.all, "all", "a", false, "show commands too that ended a moment ago and were not in the background")
	console.JSONFlag(cmd, &o.asJSON)
	return cmd
}

// psEntry is one command in a sandbox.
type psEntry struct {
	ID          string `json:"id"`
	Sandbox     string `json:"sandbox"`
	PID         int    `json:"pid"`
	Command     string `json:"command"`
	Running     bool   `json:"running"`
	Background  bool   `json:"background"`
	TTY         bool   `json:"tty"`
	StartedAtMs int64  `json:"startedAtMs"`
	StdoutBytes int64  `json:"stdoutBytes"`
	StderrBytes int64  `json:"stderrBytes"`
	ExitCode    *int   `json:"exitCode,omitempty"`
	Signal      string `json:"signal,omitempty"`
	OOM         bool   `json:"oom,omitempty"`
	Full        string `json:"full,omitempty"`
	TimedOut    bool   `json:"timedOut,omitempty"`
}

func runPs(ctx context.Context, e *env, o psOptions, args []string) error {
	handles, err := e.attach(ctx, o.SubjectFlags, args)
	if err != nil {
		return err
	}
	defer releaseAll(handles)
	entries := []psEntry{}
	for _, h := range handles {
		found, err := h.Machine.Processes(ctx)
		if err != nil {
			return err
		}
		for i := range found {
			if p := &found[i]; o.all || p.Background || p.Result == nil {
				entries = append(entries, psEntryOf(h.Name, p))
			}
		}
	}
	slices.SortStableFunc(entries, func(a, b psEntry) int { return int(b.StartedAtMs - a.StartedAtMs) })
	if o.asJSON {
		return e.PrintJSON(map[string]any{"processes": entries})
	}
	e.printPs(entries)
	return nil
}

// attach enters the sandboxes that a verb means: of a session, or one by name.
func (e *env) attach(ctx context.Context, who console.SubjectFlags, names []string) ([]*sandbox.Handle, error) {
	a, err := e.Open(ctx)
	if err != nil {
		return nil, err
	}
	if len(names) > 0 {
		name, err := pickSandbox(ctx, a, names[0])
		if err != nil {
			return nil, err
		}
		h, err := a.Manager.Attach(ctx, name)
		if err != nil {
			return nil, err
		}
		return []*sandbox.Handle{h}, nil
	}
	return a.Attach(ctx, who.Who())
}

func releaseAll(handles []*sandbox.Handle) {
	for _, h := range handles {
		h.Release()
	}
}

func psEntryOf(name string, p *machine.Process) psEntry {
	entry := psEntry{
		ID: p.ID, Sandbox: name, PID: p.PID, Command: p.Command, Running: p.Result == nil, Background: p.Background, TTY: p.TTY,
		StartedAtMs: p.Started.UnixMilli(), StdoutBytes: p.Stdout, StderrBytes: p.Stderr,
	}
	if r := p.Result; r != nil {
		entry.ExitCode, entry.Signal, entry.OOM, entry.TimedOut = &r.ExitCode, r.Signal, r.OOM, r.TimedOut
		entry.Full = string(r.QuotaExceeded)
	}
	return entry
}

func (e *env) printPs(entries []psEntry) {
	if len(entries) == 0 {
		fmt.Fprintln(e.Out, "No commands run.")
		return
	}
	t := console.NewTable("ID", "SANDBOX", "STATE", "STARTED", "OUT", "ERR", "COMMAND")
	now := time.Now()
	for _, p := range entries {
		t.Add(p.ID, p.Sandbox, psState(p), console.Ago(now.Sub(time.UnixMilli(p.StartedAtMs))),
			fmt.Sprint(p.StdoutBytes), fmt.Sprint(p.StderrBytes), console.Shortened(p.Command, commandWidth))
	}
	t.Print(e.Out)
}

// commandWidth is how much of a command ps shows.
const commandWidth = 80

func psState(p psEntry) string {
	switch {
	case p.Running:
		return "running"
	case p.OOM:
		return "out of memory"
	case p.Full != "":
		return "workspace full"
	case p.TimedOut:
		return "timed out"
	case p.Signal != "":
		return p.Signal
	}
	return fmt.Sprintf("exit %d", *p.ExitCode)
}
