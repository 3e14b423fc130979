package runcmd

import (
	"errors"
	"fmt"
	"path"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/relay"
	"github.com/atoll-run/atoll/internal/relay/branch"
	"github.com/atoll-run/atoll/internal/relay/deliver"
	"github.com/atoll-run/atoll/internal/run"
)

// prepareOptions are the flags of atoll relay prepare.
type prepareOptions struct {
	agentOptions // account, run id and branch mean the same
	container    string
	workspace    string
}

func newRelayPrepareCommand(e *env) *cobra.Command {
	var o prepareOptions
	cmd := &cobra.Command{
		Use:   "prepare --container NAME --branch NAME",
		Short: "Put a branch of the repository into a running container that Atoll did not make",
		Long: `Put a branch of the configured repository into the workspace of a running
container, without any credential: at wt/BRANCH, with the link current to it. The
container needs git and a workspace that its user can write, such as a named
volume. What an earlier run left there is put aside, never lost.

When whoever works there has ended, "atoll relay take RUN" takes the commits out.`,
		Example: `  atoll relay prepare --container gateway --work-item task.0022 --run-id run-7
  atoll relay take run-7`,
		Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runRelayPrepare(cmd, e, &o) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.container, "container", "", "`name` of the container (default: relay.container)")
	flags.StringVar(&o.workspace, "container-workspace", deliver.ContainerWorkspace, "`directory` of its workspace, inside")
	console.OldSpelling(cmd, "workspace", "container-workspace")
	flags.StringVar(&o.account, "account", "", "billing account, whose credential is used")
	flags.StringVar(&o.runID, "run-id", "", "`id` of the run (default: a new one)")
	o.branchFlags.add(cmd)
	console.JSONFlag(cmd, &o.asJSON)
	return cmd
}

func runRelayPrepare(cmd *cobra.Command, e *env, o *prepareOptions) error {
	key, err := o.key()
	switch {
	case err != nil:
		return err
	case key == "":
		return console.Usage(cmd, errors.New("no branch: name one with --branch or --work-item"))
	case !path.IsAbs(o.workspace):
		return console.Usage(cmd, fmt.Errorf("--container-workspace %q is not absolute", o.workspace))
	}
	if err := run.CheckID(o.runID); err != nil {
		return console.Usage(cmd, err)
	}
	return e.withRelays(cmd, o.asJSON, func(a *app.App, relays *deliver.Relays) error {
		if o.container == "" {
			o.container = relays.Config.Container
		}
		if o.container == "" {
			return console.Usage(cmd, errhint.With(errors.New("no container"), "name it with --container, or relay.container in the configuration"))
		}
		c := &deliver.ContainerWork{Run: o.runID, Account: o.account, Container: o.container, Root: path.Clean(o.workspace)}
		if err := a.Commits.PrepareContainer(cmd.Context(), c, branch.Key(key), e.Notice); err != nil {
			return err
		}
		if o.asJSON {
			return e.PrintJSON(c)
		}
		for _, note := range c.Work.Notes {
			e.Notice(note)
		}
		fmt.Fprintf(e.Out, "%s: %s is ready in %s, at %s (also %s)\n", c.Run, c.Work.Key.Branch(), console.Printable(c.Container), c.Work.Dir, path.Join(c.Root, "current"))
		return nil
	})
}

func newRelayTakeCommand(e *env) *cobra.Command {
	var asJSON, failed bool
	var about relay.About
	cmd := &cobra.Command{
		Use:     "take RUN",
		Short:   "Take the commits out of a container for which they were prepared, judge and push them",
		Example: "  atoll relay take run-7\n  atoll relay take run-7 --failed",
		Args:    console.ExactlyOne("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.withRelays(cmd, asJSON, func(a *app.App, relays *deliver.Relays) error {
				id, err := pickRelay(relays, args[0])
				if err != nil {
					return err
				}
				record, note, err := a.Commits.TakeContainer(cmd.Context(), id, about, failed)
				if record != nil && asJSON {
					return console.FirstOf(e.PrintJSON(record), err)
				}
				if err == nil {
					fmt.Fprintf(e.Out, "%s: %s\n", console.Printable(id), console.Printable(note))
				}
				return err
			})
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&failed, "failed", false, "the agent failed: keep the commits, and push nothing")
	flags.StringVar(&about.Title, "title", "", "`title` of the pull request")
	flags.StringVar(&about.Model, "model", "", "`model` that the pull request names")
	flags.StringVar(&about.Cost, "cost", "", "`cost` that the pull request names")
	console.JSONFlag(cmd, &asJSON)
	return cmd
}
