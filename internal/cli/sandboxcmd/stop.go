package sandboxcmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/client"
	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/cli/backend"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
)

type endOptions struct{ force, discard, asJSON bool }

// NewStopCommand returns the command `atoll stop`.
func NewStopCommand(c *console.Env) *cobra.Command {
	e := &env{c}
	var o endOptions
	cmd := &cobra.Command{
		Use:   "stop SANDBOX…",
		Short: "Stop sandboxes and the commands in them; the next use starts them again",
		Long: `Stop sandboxes and the commands in their background, and say which. Files stay,
and the next use starts the sandbox again. SANDBOX is a name as list shows it, the
session, or the beginning of either.

A sandbox that somebody works in is left alone unless --force is given.`,
		Example: `  atoll stop agent-main
  atoll sandbox stop openclaw-sbx-agent-main-f331f052 --force`,
		Args:       someSandbox,
		SuggestFor: []string{"kill", "halt", "down"},
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.endSandboxes(cmd.Context(), o, args, e.throughGateway(stopOne, (*client.Client).StopSandbox))
		},
	}
	addForce(cmd, &o.force, "also stop what somebody works in")
	console.JSONFlag(cmd, &o.asJSON)
	return cmd
}

// NewRmCommand returns the command `atoll rm`.
func NewRmCommand(c *console.Env) *cobra.Command {
	e := &env{c}
	var o endOptions
	cmd := &cobra.Command{
		Use:   "rm SANDBOX…",
		Short: "Remove sandboxes",
		Long: `Remove sandboxes. SANDBOX is a name as list shows it, the session, or the
beginning of either.

The private copy of the workspace stays where it is, and the next sandbox of the
same name works on it again; --discard removes it too. The changes of an overlay
always stay: "atoll sync" decides about them. What was changed outside of the
workspace is gone with the sandbox.

A sandbox in which commands run, or that somebody works in, is left alone unless
--force is given.`,
		Example: `  atoll rm agent-main
  atoll sandbox rm openclaw-sbx-agent-main-f331f052 --force --discard`,
		Args:       someSandbox,
		SuggestFor: []string{"remove", "delete", "del", "destroy"},
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.endSandboxes(cmd.Context(), o, args, e.throughGateway(removeOne, (*client.Client).RemoveSandbox))
		},
	}
	addForce(cmd, &o.force, "also remove what is in use, and end what runs in it")
	cmd.Flags().BoolVar(&o.discard, "discard", false, "also remove the private copies of what is removed")
	console.JSONFlag(cmd, &o.asJSON)
	return cmd
}

// addForce adds --force and, unseen, the -f that docker has: elsewhere it is --follow.
func addForce(cmd *cobra.Command, force *bool, about string) {
	cmd.Flags().BoolVar(force, "force", false, about)
	cmd.Flags().BoolVarP(force, "yes", "f", false, about)
	_ = cmd.Flags().MarkHidden("yes")
}

func someSandbox(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return console.Usage(cmd, errhint.With(errors.New("no sandbox was given"), "`atoll ps` shows what there is"))
	}
	return nil
}

// ended is what became of one sandbox.
type ended struct {
	Name  string           `json:"containerName"`
	Ended []runningCommand `json:"ended"` // commands that ran in it
	Kept  string           `json:"kept,omitempty"`
	// Overlay is the directory with the changes of an overlay, which stay.
	Overlay string `json:"overlay,omitempty"`
	Error   string `json:"error,omitempty"`
	Done    string `json:"done,omitempty"`
	failed  error
}

// endSandboxes does one thing to every sandbox that is named. Names are found
// before anything is done.
func (e *env) endSandboxes(ctx context.Context, o endOptions, words []string, do ender) error {
	a, err := e.Open(ctx)
	if err != nil {
		return e.ConfigError(err, o.asJSON)
	}
	entries, err := entriesNamed(ctx, a, words)
	if err != nil {
		return err
	}
	results, failed := []ended{}, 0
	for _, entry := range entries {
		r := ended{Name: entry.ContainerName, Ended: e.commandsIn(ctx, a, entry)}
		if err := do(ctx, a, entry, o, &r); err != nil {
			failed++
			r.failed, r.Error, r.Ended, r.Done = err, err.Error(), []runningCommand{}, ""
		}
		results = append(results, r)
		if !o.asJSON {
			e.printEnded(&r)
		}
	}
	if o.asJSON {
		err = e.PrintJSON(map[string]any{"sandboxes": results, "failed": failed})
	}
	if failed > 0 {
		return console.FirstOf(err, console.WithCode(console.ExitFailure, fmt.Errorf("%d of %d were left as they are", failed, len(entries))))
	}
	return err
}

func entriesNamed(ctx context.Context, a *app.App, words []string) (chosen []*sandbox.Entry, err error) {
	entries, err := a.Entries(ctx)
	if err != nil {
		return nil, err
	}
	for _, word := range words {
		name, err := pickSandbox(ctx, a, word)
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			if entry.ContainerName == name {
				chosen = append(chosen, entry)
			}
		}
	}
	return chosen, nil
}

// ender ends one sandbox and notes what became of it.
type ender func(ctx context.Context, a *app.App, entry *sandbox.Entry, o endOptions, r *ended) error

// throughGateway ends the sandbox of a program through the running gateway, which has
// its record and may be connected to it, and any other here.
func (e *env) throughGateway(here ender, there func(*client.Client, context.Context, string) (*api.Sandbox, error)) ender {
	return func(ctx context.Context, a *app.App, entry *sandbox.Entry, o endOptions, r *ended) error {
		if entry.AgentID != config.APIAgent || len(r.Ended) > 0 && !o.force {
			return here(ctx, a, entry, o, r)
		}
		g, err := backend.RunningGateway(ctx, e.Env)
		if g == nil || err != nil {
			return errors.Join(err, here(ctx, a, entry, o, r))
		}
		r.Done = "ended by the gateway"
		_, err = there(g.Client, ctx, entry.ContainerName)
		return backend.ProblemError(err)
	}
}

func stopOne(ctx context.Context, a *app.App, entry *sandbox.Entry, o endOptions, r *ended) error {
	r.Done = "stopped"
	return inUse(a.Stop(ctx, entry.ContainerName, o.force), r.Ended, "--force")
}

func removeOne(ctx context.Context, a *app.App, entry *sandbox.Entry, o endOptions, r *ended) (err error) {
	if len(r.Ended) > 0 && !o.force {
		return inUse(fmt.Errorf("sandbox %q: %w", entry.ContainerName, sandbox.ErrBusy), r.Ended, "--force")
	}
	r.Done = "removed"
	r.Kept, err = a.RemoveSandbox(ctx, entry, o.force, o.discard)
	r.Overlay = a.OverlayOf(entry)
	return inUse(err, r.Ended, "--force")
}

func (e *env) printEnded(r *ended) {
	if r.failed != nil {
		fmt.Fprintln(e.Err, console.Joined(r.Error))
		if hint := errhint.Of(r.failed); hint != "" {
			fmt.Fprintln(e.Err, "hint: "+console.Printable(hint))
		}
		return
	}
	fmt.Fprintf(e.Out, "%s: %s\n", r.Name, r.Done)
	for _, c := range r.Ended {
		fmt.Fprintf(e.Out, "  ended: %s\n", console.Printable(c.String()))
	}
	if r.Kept != "" {
		fmt.Fprintf(e.Out, "  its private copy stays: %s (--discard removes it too)\n", console.Printable(r.Kept))
	}
	if r.Overlay != "" {
		fmt.Fprintln(e.Out, "  what it changed in its overlay stays: `atoll sync` decides about it")
	}
}
