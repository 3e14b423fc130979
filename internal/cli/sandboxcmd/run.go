package sandboxcmd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

type runOptions struct {
	commandOptions
	workspace, access, image, network string
	memory                            string
	remove                            bool
	modelOptions
}

// NewRunCommand returns the command `atoll run`.
func NewRunCommand(c *console.Env) *cobra.Command { return newRunCommand(&env{c}, runKind{}) }

// runKind is how a verb differs from run.
type runKind struct {
	learn  bool // egress is learned
	client bool // what the command leaves running ends with it
}

func newRunCommand(e *env, kind runKind) *cobra.Command {
	var o runOptions
	o.egress.Learn, o.endTree = kind.learn, kind.client
	cmd := &cobra.Command{
		Use:   "run [flags] -- COMMAND [ARGUMENT…]",
		Short: "Run one command in a sandbox; its exit code is the command's",
		Long: `Run one command in a sandbox; its exit code is the command's.

The sandbox is the one of the agent and session, made if needed and kept for
the next command; with --rm it is a new one that is removed afterwards. It is
always a sandbox: nothing runs on the host, whatever the configuration says.

In a git checkout, with a configuration that says nothing about sandboxes, it is the
sandbox of the checkout: the one of atoll shell and of the agents. The files are
there, and what the command changes is kept apart until it is approved (atoll sync).
--agent, --session, --account, --scope, --workspace and --rm mean another sandbox.

All sessions of an agent share one sandbox and its files, unless sandbox.scope or
--scope says otherwise. --workspace, --access, --image, --network and --memory
apply when the sandbox is made: one that is in use, or was a moment ago, with other
settings is an error and not used.

Exit codes: the command's own; 124 timeout, 125 failure of Atoll itself,
126 not executable, 127 not found, 128+n ended by signal n.`,
		Example: `  atoll run -- python3 -c 'print(6*7)'
  atoll run -- make test
  atoll run --workspace . --access rw -- make test
  atoll run --rm --timeout 30s -- sh -c 'curl example.org || echo no network'`,
		Args: asRunFailure(console.SomeCommand),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd); err != nil {
				return console.RunError(err)
			}
			return console.RunError(runRun(cmd.Context(), e, o, args))
		},
	}
	o.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.workspace, "workspace", "", "agent workspace `directory` (default: as configured)")
	flags.StringVar(&o.access, "access", "", "what is seen of the workspace: `none` (a private copy of the behaviour files), ro (also the workspace at /agent), overlay (the workspace, with changes kept apart until they are approved) or rw (the workspace itself)")
	flags.StringVar(&o.image, "image", "", "image to make the sandbox from (default: as configured)")
	flags.StringVar(&o.network, "network", "", "network of the sandbox (default: as configured)")
	console.SizeFlag(cmd, &o.memory, "memory", "memory limit, a `size` such as 512m (default: as configured)")
	flags.BoolVar(&o.remove, "rm", false, "use a new sandbox and remove it, and its workspace copy, afterwards")
	o.addModels(cmd)
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return console.RunError(console.Usage(cmd, err)) })
	return cmd
}

func asRunFailure(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error { return console.RunError(check(cmd, args)) }
}

func runRun(ctx context.Context, e *env, o runOptions, argv []string) error {
	who := o.Who()
	who.Adjust, who.Exact = o.adjust, o.adjusts()
	a, who, err := o.open(ctx, e, who)
	if err != nil {
		return err
	}
	var session *provide.ReadySandbox
	if o.remove {
		defer func() { e.dispose(ctx, a, who, session) }()
	}
	if d := o.directory(e, a); d != nil {
		session, err = e.provideDirectory(ctx, a, &o, d)
	} else {
		session, err = e.provide(ctx, a, who)
	}
	if err != nil {
		return err
	}
	defer session.Release()
	if o.wantsModels() {
		return e.runWithModels(ctx, a, session, &o, argv)
	}
	return e.runAudited(ctx, a, session, o.commandOptions, argv)
}

func (o *runOptions) open(ctx context.Context, e *env, who provide.Subject) (*app.App, provide.Subject, error) {
	if o.remove {
		return e.OpenAlone(ctx, who)
	}
	a, err := e.Open(ctx)
	return a, who, err
}

// check refuses values that the file could not hold either.
func (o *runOptions) check(cmd *cobra.Command) (err error) {
	if err := errors.Join(o.commandOptions.check(cmd), o.checkModels()); err != nil {
		return err
	}
	if words := config.AccessWords(); o.access != "" && !slices.Contains(words, o.access) {
		return errhint.With(fmt.Errorf("--access %q is not known", o.access), "use "+strings.Join(words, ", "))
	}
	if o.workspace != "" {
		o.workspace, err = filepath.Abs(o.workspace)
	}
	return err
}

// adjusts reports whether a flag asks for other settings than the configuration's.
func (o *runOptions) adjusts() bool {
	return o.workspace+o.access+o.image+o.network+o.memory != ""
}

// adjust lets the flags override the configuration, on the agent's level.
func (o *runOptions) adjust(agent *config.Agent) {
	box := &agent.Sandbox
	for _, flag := range []struct {
		value string
		field string
		set   func(string)
	}{
		{o.workspace, "workspace", func(v string) { agent.Workspace = v }},
		{o.access, "sandbox.workspaceAccess", func(v string) { box.SetAccess(config.Access(v)) }},
		{o.image, "sandbox.docker.image", func(v string) { box.Docker.Image = v }},
		{o.network, "sandbox.docker.network", func(v string) { box.Docker.Network = v }},
		{o.memory, "sandbox.docker.memory", func(v string) { box.Docker.Memory = config.Size{Text: v} }},
	} {
		if flag.value != "" {
			flag.set(flag.value)
			agent.Origins[flag.field] = config.Origin{Source: "agent", Path: console.CommandLine}
		}
	}
	o.SubjectFlags.Adjust(agent)
	if o.remove {
		box.Scope = config.ScopeSession
	}
}

// disposeTimeout bounds the removal of a sandbox after its command.
const disposeTimeout = 30 * time.Second

// dispose removes the sandbox of who and its private copy, as far as they were
// made: session is nil if they were not made ready.
func (e *env) dispose(ctx context.Context, a *app.App, who provide.Subject, session *provide.ReadySandbox) {
	p, err := planOf(a, who, session)
	if err != nil || len(p.Findings) > 0 {
		return // refused: nothing was made
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), disposeTimeout)
	defer cancel()
	changes := a.CountChanges(ctx, p)
	if err := a.Discard(ctx, p); err != nil {
		e.Notice("the sandbox was not removed: " + err.Error())
	} else if changes > 0 {
		e.Notice(fmt.Sprintf("%s: what was changed above it (%d files) was discarded with the sandbox, as --rm asks", p.Layout.AgentDir, changes))
	}
}

func planOf(a *app.App, who provide.Subject, session *provide.ReadySandbox) (*plan.Plan, error) {
	if session != nil {
		return session.Plan, nil
	}
	return a.Plan(who)
}
