package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/atoll-run/atoll/internal/advice"
	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// commandOptions are what run and sandbox exec have in common.
type commandOptions struct {
	whoFlags
	env     []string
	dir     string
	timeout time.Duration
	noStdin bool
	asJSON  bool
}

// check refuses what can be seen to be wrong before a sandbox is made.
func (o *commandOptions) check(cmd *cobra.Command) error {
	if err := o.whoFlags.check(cmd); err != nil {
		return err
	}
	if o.timeout < 0 {
		return usage(cmd, fmt.Errorf("--timeout %v is negative", o.timeout))
	}
	if _, err := parseEnv(o.env); err != nil {
		return withCode(exitUsage, err)
	}
	return nil
}

func (o *commandOptions) add(cmd *cobra.Command) {
	o.whoFlags.add(cmd)
	flags := cmd.Flags()
	flags.StringArrayVarP(&o.env, "env", "e", nil, "set `NAME=VALUE` for the command (again for more)")
	flags.StringVarP(&o.dir, "workdir", "w", "", "directory inside to run in (default: the sandbox's workdir)")
	flags.DurationVar(&o.timeout, "timeout", 0, "end the command after this `time`, with exit code 124")
	flags.BoolVarP(&o.noStdin, "no-stdin", "n", false, "do not pass standard input on")
	flags.BoolVar(&o.asJSON, "json", false, "capture output and print one JSON object instead")
	flags.SetInterspersed(false)
}

type runOptions struct {
	commandOptions
	workspace, access, image, network string
	memory                            string
	remove                            bool
}

func newRunCommand(e *env) *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run [flags] -- COMMAND [ARGUMENT…]",
		Short: "Run one command in a sandbox; its exit code is the command's",
		Long: `Run one command in a sandbox; its exit code is the command's.

The sandbox is the one of the agent and session, made if needed and kept for
the next command; with --rm it is a new one that is removed afterwards. It is
always a sandbox: nothing runs on the host, whatever the configuration says.

Exit codes: the command's own; 124 timeout, 125 failure of Atoll itself,
126 not executable, 127 not found, 128+n ended by signal n.`,
		Example: `  atoll run -- python3 -c 'print(6*7)'
  atoll run --workspace . --access rw -- make test
  atoll run --rm --timeout 30s -- sh -c 'curl example.org || echo no network'`,
		Args: asRunFailure(someCommand),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd); err != nil {
				return asRunError(err)
			}
			return asRunError(runRun(cmd.Context(), e, o, args))
		},
	}
	o.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.workspace, "workspace", "", "agent workspace `directory` (default: as configured)")
	flags.StringVar(&o.access, "access", "", "`none` (private copy), ro or rw (default: as configured)")
	flags.StringVar(&o.image, "image", "", "image to make the sandbox from (default: as configured)")
	flags.StringVar(&o.network, "network", "", "network of the sandbox (default: as configured)")
	flags.StringVar(&o.memory, "memory", "", "memory limit such as 512m (default: as configured)")
	flags.BoolVar(&o.remove, "rm", false, "use a new sandbox and remove it, and its workspace copy, afterwards")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return asRunError(usage(cmd, err)) })
	return cmd
}

// asRunError gives every failure of Atoll itself the code 125, so that none can
// be mistaken for the command's.
func asRunError(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, sandbox.ErrBusy) {
		err = advice.With(err, advice.Of(err)+"; or give --rm for a sandbox of its own")
	}
	if exit, ok := errors.AsType[*exitError](err); ok && (exit.err == nil || exit.code >= exitTimeout) {
		return err
	}
	return withCode(exitRunFailure, err)
}

func asRunFailure(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error { return asRunError(check(cmd, args)) }
}

func runRun(ctx context.Context, e *env, o runOptions, argv []string) error {
	a, err := e.open(ctx)
	if err != nil {
		return err
	}
	who := o.who()
	who.Adjust = o.adjust
	if o.remove {
		if who, err = throwAway(a, who); err != nil {
			return err
		}
		defer e.dispose(ctx, a, who)
	}
	session, err := e.provide(ctx, a, who)
	if err != nil {
		return err
	}
	defer session.Release()
	return e.runCommand(ctx, session, o.commandOptions, argv)
}

// throwAway is the same agent in a session of its own, whose sandbox nobody
// else has.
func throwAway(a *app.App, who app.Who) (app.Who, error) {
	p, err := a.Plan(who)
	if err != nil {
		return who, err
	}
	who.AgentID, who.SessionKey = "", "agent:"+p.Agent.ID+":run-"+strings.ToLower(rand.Text())
	return who, nil
}

// check refuses values that the file could not hold either.
func (o *runOptions) check(cmd *cobra.Command) (err error) {
	if err := o.commandOptions.check(cmd); err != nil {
		return err
	}
	switch config.Access(o.access) {
	case "", config.AccessNone, config.AccessRO, config.AccessRW:
	default:
		return advice.With(fmt.Errorf("--access %q is not known", o.access), "use none, ro or rw")
	}
	if n, err := (config.Size{Text: o.memory}).Bytes(); o.memory != "" && (err != nil || n <= 0) {
		return advice.With(fmt.Errorf("--memory %q is not an amount of memory", o.memory), "write a number and a unit, such as 512m or 2g")
	}
	if o.workspace != "" {
		o.workspace, err = filepath.Abs(o.workspace)
	}
	return err
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
		{o.access, "sandbox.workspaceAccess", func(v string) { box.WorkspaceAccess = config.Access(v) }},
		{o.image, "sandbox.docker.image", func(v string) { box.Docker.Image = v }},
		{o.network, "sandbox.docker.network", func(v string) { box.Docker.Network = v }},
		{o.memory, "sandbox.docker.memory", func(v string) { box.Docker.Memory = config.Size{Text: v} }},
	} {
		if flag.value != "" {
			flag.set(flag.value)
			agent.Origins[flag.field] = config.Origin{Source: "agent", Path: commandLine}
		}
	}
	if o.remove {
		box.Scope = config.ScopeSession
	}
}

// provide makes the session's sandbox ready and shows what it has to say.
func (e *env) provide(ctx context.Context, a *app.App, who app.Who) (*app.Session, error) {
	done := e.progress("preparing the sandbox")
	session, err := a.Provide(ctx, who)
	done()
	if errors.Is(err, sandbox.ErrDenied) {
		err = whereDenied(a, who, err)
	}
	if err != nil {
		return nil, err
	}
	e.logger().DebugContext(ctx, "sandbox is ready", "name", session.Name, "backend", session.Plan.Spec.Backend, "made", session.Created)
	for _, n := range session.Notices {
		e.notice(n)
	}
	return session, nil
}

// whereDenied says where in the file the denied settings are.
func whereDenied(a *app.App, who app.Who, err error) error {
	p, planErr := a.Plan(who)
	if planErr != nil {
		return err
	}
	if problems := refusals(a.Settings, p); len(problems) > 0 {
		return withCode(exitDenied, problems)
	}
	return err
}

// disposeTimeout bounds the removal of a sandbox after its command.
const disposeTimeout = 30 * time.Second

// dispose removes the sandbox of who and its private copy, as far as they were
// made.
func (e *env) dispose(ctx context.Context, a *app.App, who app.Who) {
	p, err := a.Plan(who)
	if err != nil || len(p.Findings) > 0 {
		return // refused: nothing was made
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), disposeTimeout)
	defer cancel()
	if err := a.Discard(ctx, p); err != nil {
		e.notice("the sandbox was not removed: " + err.Error())
	}
}

// runCommand runs argv and ends with its exit code.
func (e *env) runCommand(ctx context.Context, s *app.Session, o commandOptions, argv []string) error {
	command, err := e.command(s, o, argv)
	if err != nil {
		return err
	}
	if o.asJSON {
		return e.captureCommand(ctx, s, command)
	}
	result, err := s.Machine.Exec(ctx, command)
	return commandEnd(command, result, err)
}

func (e *env) command(s *app.Session, o commandOptions, argv []string) (*machine.Command, error) {
	call, err := parseEnv(o.env)
	if err != nil {
		return nil, err
	}
	env := policy.SanitizeEnv(policy.EnvRequest{Configured: s.Plan.Env.Passed, Call: call, AllowSecret: s.Plan.Agent.Sandbox.AllowSecretEnv})
	for _, b := range env.Blocked {
		return nil, advice.With(fmt.Errorf("environment variable %s: %s", b.Name, b.Reason), "keep secrets on the host, or name it in sandbox.dangerouslyAllowSecretEnv")
	}
	command := &machine.Command{Argv: argv, Env: app.CommandEnv(s.Plan, env.Passed), Dir: o.dir, Stdout: e.Out, Stderr: e.Err, Timeout: o.timeout}
	if !path.IsAbs(command.Dir) {
		command.Dir = path.Join(s.Plan.Spec.Workdir, command.Dir)
	}
	if !o.noStdin && !isInteractive(e.In) {
		command.Stdin = e.In
	}
	return command, nil
}

// isInteractive reports whether input comes from a person at a terminal, who
// has not been asked for any.
func isInteractive(in io.Reader) bool {
	f, ok := in.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func parseEnv(entries []string) (map[string]string, error) {
	env := map[string]string{}
	for i, entry := range entries {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || name == "" { // it is not repeated: it may be a secret
			return nil, advice.With(fmt.Errorf("--env: number %d is not NAME=VALUE", i+1), "write for example --env LANG=C.UTF-8")
		}
		env[name] = value
	}
	return env, nil
}

// commandEnd turns a command's end into ours.
func commandEnd(command *machine.Command, result *machine.Result, err error) error {
	switch {
	case errors.Is(err, machine.ErrNotFound):
		return withCode(exitNotFound, advice.With(err, "it must be part of the sandbox's image, or lie below "+command.Dir))
	case errors.Is(err, machine.ErrNotExecutable):
		return withCode(exitNotExecutable, advice.With(err, "make it executable, or run it through its interpreter"))
	case errors.Is(err, machine.ErrNoDirectory):
		return advice.With(err, "--workdir is a directory inside the sandbox; the workspace is there under its own path")
	case err != nil:
		return err
	case result.TimedOut:
		return withCode(exitTimeout, fmt.Errorf("the command was ended after %v", command.Timeout))
	case result.OOM:
		return withCode(exitOutOfMemory, advice.With(errors.New("the command ran out of memory"), "raise sandbox.docker.memory"))
	case result.ExitCode != 0:
		return withCode(result.ExitCode, nil)
	}
	return nil
}
