package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
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
		Args: asRunFailure(minimumArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
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
	if exit, ok := errors.AsType[*exitError](err); ok && (exit.err == nil || exit.code >= exitTimeout) {
		return err
	}
	return withCode(exitRunFailure, err)
}

func asRunFailure(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error { return asRunError(check(cmd, args)) }
}

func runRun(ctx context.Context, e *env, o runOptions, argv []string) error {
	if err := o.check(); err != nil {
		return err
	}
	a, err := e.open(ctx)
	if err != nil {
		return err
	}
	who := o.who()
	who.Adjust = o.adjust
	if o.remove {
		who.SessionKey = throwAway(a, who)
	}
	session, err := e.provide(ctx, a, who)
	if err != nil {
		return err
	}
	if o.remove {
		defer e.dispose(ctx, a, session)
	}
	defer session.Release()
	return e.runCommand(ctx, session, o.commandOptions, argv)
}

// throwAway is a session of its own, whose sandbox nobody else has.
func throwAway(a *app.App, who app.Who) string {
	agent := who.AgentID
	if agent == "" {
		agent = a.Config.DefaultAgent()
	}
	return "agent:" + agent + ":run-" + strings.ToLower(rand.Text())
}

// check refuses values that the file could not hold either.
func (o *runOptions) check() (err error) {
	switch config.Access(o.access) {
	case "", config.AccessNone, config.AccessRO, config.AccessRW:
	default:
		return advice.With(fmt.Errorf("--access %q is not known", o.access), "use none, ro or rw")
	}
	if _, err := (config.Size{Text: o.memory}).Bytes(); o.memory != "" && err != nil {
		return fmt.Errorf("--memory: %w", err)
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
		path  string
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
			agent.Origins[flag.path] = config.Origin{Source: "agent", Path: "the command line"}
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
	if err != nil {
		return nil, err
	}
	for _, n := range session.Notices {
		e.notice(n)
	}
	return session, nil
}

func (e *env) dispose(ctx context.Context, a *app.App, s *app.Session) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	if err := a.Discard(ctx, s.Plan); err != nil {
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
	return commandEnd(result, err, o.timeout)
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
	if command.Dir == "" {
		command.Dir = s.Plan.Spec.Workdir
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
	for _, entry := range entries {
		name, value, ok := strings.Cut(entry, "=")
		if !ok {
			return nil, advice.With(fmt.Errorf("--env %q has no value", entry), "write NAME=VALUE")
		}
		env[name] = value
	}
	return env, nil
}

// commandEnd turns a command's end into ours.
func commandEnd(result *machine.Result, err error, timeout time.Duration) error {
	switch {
	case errors.Is(err, machine.ErrNotFound):
		return withCode(exitNotFound, err)
	case errors.Is(err, machine.ErrNotExecutable):
		return withCode(exitNotExecutable, err)
	case err != nil:
		return err
	case result.TimedOut:
		return withCode(exitTimeout, fmt.Errorf("the command was ended after %v", timeout))
	case result.OOM:
		return withCode(exitOutOfMemory, advice.With(errors.New("the command ran out of memory"), "raise sandbox.docker.memory"))
	case result.ExitCode != 0:
		return withCode(result.ExitCode, nil)
	}
	return nil
}
