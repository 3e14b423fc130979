package cli

import (
	"errors"
	"fmt"
	"path"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/relay"
	"github.com/atoll-run/atoll/internal/relay/branch"
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
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runRelayPrepare(cmd, e, &o) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.container, "container", "", "`name` of the container (default: relay.container)")
	flags.StringVar(&o.workspace, "container-workspace", app.ContainerWorkspace, "`directory` of its workspace, inside")
	oldSpelling(cmd, "workspace", "container-workspace")
	flags.StringVar(&o.account, "account", "", "billing account, whose credential is used")
	flags.StringVar(&o.runID, "run-id", "", "`id` of the run (default: a new one)")
	o.branchFlags.add(cmd)
	jsonFlag(cmd, &o.asJSON)
	return cmd
}

func runRelayPrepare(cmd *cobra.Command, e *env, o *prepareOptions) error {
	key, err := o.key()
	switch {
	case err != nil:
		return err
	case key == "":
		return usage(cmd, errors.New("no branch: name one with --branch or --work-item"))
	case !path.IsAbs(o.workspace):
		return usage(cmd, fmt.Errorf("--container-workspace %q is not absolute", o.workspace))
	}
	if err := run.CheckID(o.runID); err != nil {
		return usage(cmd, err)
	}
	return e.withRelays(cmd, o.asJSON, func(a *app.App, relays *app.Relays) error {
		if o.container == "" {
			o.container = relays.Config.Container
		}
		if o.container == "" {
			return usage(cmd, errhint.With(errors.New("no container"), "name it with --container, or relay.container in the configuration"))
		}
		c := &app.ContainerWork{Run: o.runID, Account: o.account, Container: o.container, Root: path.Clean(o.workspace)}
		if err := a.PrepareContainer(cmd.Context(), c, branch.Key(key), e.notice); err != nil {
			return err
		}
		if o.asJSON {
			return e.printJSON(c)
		}
		for _, note := range c.Work.Notes {
			e.notice(note)
		}
		fmt.Fprintf(e.Out, "%s: %s is ready in %s, at %s (also %s)\n", c.Run, c.Work.Key.Branch(), printable(c.Container), c.Work.Dir, path.Join(c.Root, "current"))
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
		Args:    exactlyOne("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.withRelays(cmd, asJSON, func(a *app.App, relays *app.Relays) error {
				id, err := pickRelay(relays, args[0])
				if err != nil {
					return err
				}
				record, note, err := a.TakeContainer(cmd.Context(), id, about, failed)
				if record != nil && asJSON {
					return firstOf(e.printJSON(record), err)
				}
				if err == nil {
					fmt.Fprintf(e.Out, "%s: %s\n", printable(id), printable(note))
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
	jsonFlag(cmd, &asJSON)
	return cmd
}
