package sandboxcmd

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/cli/egresscmd"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// commandOptions are what run and sandbox exec have in common.
type commandOptions struct {
	console.SubjectFlags
	env     []string
	dir     string
	timeout time.Duration
	noStdin bool
	asJSON  bool
	// tty gives the command a terminal, typing passes on what the user types.
	tty, typing bool
	endTree     bool // what it leaves running ends with it
	egress      egresscmd.Flags
	// grant is what the command is started under, and grantEnv the variables
	// that go with it.
	grant    string
	grantEnv map[string]string
	denials  func() []string // what egress refused to the command; nil if it has none
}

// check refuses what can be seen to be wrong before a sandbox is made.
func (o *commandOptions) check(cmd *cobra.Command) error {
	if err := o.SubjectFlags.Check(cmd); err != nil {
		return err
	}
	if o.tty && o.asJSON {
		return console.Usage(cmd, errors.New("--tty and --json cannot be given together"))
	}
	if o.typing && o.noStdin {
		return console.Usage(cmd, errors.New("--interactive and --no-stdin cannot be given together"))
	}
	if _, err := parseEnv(o.env); err != nil {
		return console.WithCode(console.ExitUsage, err)
	}
	return o.egress.Check(cmd)
}

func (o *commandOptions) add(cmd *cobra.Command) {
	o.SubjectFlags.Add(cmd)
	o.egress.Add(cmd)
	flags := cmd.Flags()
	flags.StringArrayVarP(&o.env, "env", "e", nil, "set `NAME=VALUE` for the command (again for more)")
	flags.StringVarP(&o.dir, "workdir", "w", "", "directory inside to run in (default: the sandbox's workdir)")
	console.TimeFlag(cmd, &o.timeout, "timeout", 0, "end the command after this `time`, with exit code 124")
	flags.BoolVar(&o.noStdin, "no-stdin", false, "do not pass standard input on")
	flags.BoolVarP(&o.noStdin, "no-input", "n", false, "do not pass standard input on")
	_ = flags.MarkHidden("no-input") // an earlier spelling: -n is --limit elsewhere
	flags.BoolVarP(&o.tty, "tty", "t", false, "give the command a terminal; what it prints comes on standard output alone")
	flags.BoolVarP(&o.typing, "interactive", "i", false, "pass on what is typed at a terminal")
	flags.BoolVar(&o.asJSON, "json", false, "capture output and print one JSON object instead")
	flags.SetInterspersed(false)
}

// provide makes the session's sandbox ready and shows what it has to say.
func (e *env) provide(ctx context.Context, a *app.App, who provide.Subject) (*provide.ReadySandbox, error) {
	done := e.Progress("preparing the sandbox")
	session, err := a.Provide(ctx, who, provide.Options{})
	done()
	if errors.Is(err, sandbox.ErrDenied) {
		err = whereDenied(a, who, err)
	}
	if err != nil {
		return nil, err
	}
	e.Logger().DebugContext(ctx, "sandbox is ready", "name", session.Name, "backend", session.Plan.Spec.Backend, "made", session.Created)
	e.SaySharing(ctx, a, who)
	for _, n := range session.Notices {
		e.Notice(n)
	}
	return session, nil
}

// whereDenied says where in the file the denied settings are.
func whereDenied(a *app.App, who provide.Subject, err error) error {
	p, planErr := a.Plan(who)
	if planErr != nil {
		return err
	}
	if problems := console.Refusals(a.Settings, p); len(problems) > 0 {
		return console.WithCode(console.ExitDenied, problems)
	}
	return err
}

// runAudited is runCommand with a record in the audit log.
func (e *env) runAudited(ctx context.Context, a *app.App, s *provide.ReadySandbox, o commandOptions, argv []string) error {
	if err := a.Models.AuditCommand(s, o.Account, argv); err != nil {
		return err
	}
	return e.withEgress(ctx, s, &o, nil, func() error { return e.runCommand(ctx, s, o, argv) })
}

// runCommand runs argv and ends with its exit code.
func (e *env) runCommand(ctx context.Context, s *provide.ReadySandbox, o commandOptions, argv []string) error {
	command, err := e.command(s, o, argv)
	if err != nil {
		return err
	}
	if o.asJSON {
		return e.captureCommand(ctx, s, o, command)
	}
	restore, err := e.connectTerminal(o, command)
	if err != nil {
		return err
	}
	result, err := s.Exec(ctx, command)
	restore()
	if result != nil && result.PidsLimitHit {
		e.Notice("the sandbox ran out of processes, and what commands had left running was ended; sandbox.docker.pidsLimit is the limit")
	}
	return commandEnd(command, result, err)
}

func (e *env) command(s *provide.ReadySandbox, o commandOptions, argv []string) (*machine.Command, error) {
	call, err := parseEnv(o.env)
	if err != nil {
		return nil, err
	}
	env := policy.SanitizeEnv(policy.EnvRequest{Configured: s.Plan.Env.Passed, Call: call, AllowSecret: s.Plan.Agent.Sandbox.AllowSecretEnv})
	for _, b := range env.Blocked {
		return nil, errhint.With(fmt.Errorf("environment variable %s: %s", b.Name, b.Reason), "keep secrets on the host, or name it in sandbox.dangerouslyAllowSecretEnv")
	}
	for name, value := range o.grantEnv {
		if _, said := env.Passed[name]; !said {
			env.Passed[name] = value
		}
	}
	command := &machine.Command{Argv: argv, Grant: o.grant, Env: provide.CommandEnv(s.Plan, env.Passed), Dir: o.dir, Stdout: e.CommandOut(), Stderr: e.CommandErr(), Timeout: o.timeout, EndTree: o.endTree}
	if o.tty { // who asks for a terminal gets what acts on one
		command.Stdout, command.Stderr = e.Out, e.Err
	}
	if !path.IsAbs(command.Dir) {
		command.Dir = path.Join(s.Plan.Spec.Workdir, command.Dir)
	}
	if !o.noStdin && (o.typing || !console.IsInteractive(e.In)) {
		command.Stdin = e.In
	}
	return command, nil
}

func parseEnv(entries []string) (map[string]string, error) {
	env := map[string]string{}
	for i, entry := range entries {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || name == "" { // it is not repeated: it may be a secret
			return nil, errhint.With(fmt.Errorf("--env: number %d is not NAME=VALUE", i+1), "write for example --env LANG=C.UTF-8")
		}
		env[name] = value
	}
	return env, nil
}

// commandEnd turns a command's end into ours.
func commandEnd(command *machine.Command, result *machine.Result, err error) error {
	switch {
	case errors.Is(err, machine.ErrNotFound):
		return console.WithCode(console.ExitNotFound, errhint.With(err, "it must be part of the sandbox's image, or lie below "+command.Dir))
	case errors.Is(err, machine.ErrNotExecutable):
		return console.WithCode(console.ExitNotExecutable, errhint.With(err, "make it executable, or run it through its interpreter"))
	case errors.Is(err, machine.ErrNoDirectory):
		return errhint.With(err, "--workdir is a directory inside the sandbox; the workspace is there under its own path")
	case err != nil:
		return err
	case result.TimedOut:
		return console.WithCode(console.ExitTimeout, fmt.Errorf("the command was ended after %v", command.Timeout))
	case result.OOM:
		return console.WithCode(console.ExitOutOfMemory, errhint.With(errors.New("the command ran out of memory"), "raise sandbox.docker.memory"))
	case result.QuotaExceeded != "":
		return console.WithCode(max(result.ExitCode, 1), errhint.With(errors.New(hindrance(result)+": "+result.QuotaExceeded.String()), "remove files from the workspace, or raise sandbox.docker.workspaceLimit"))
	case result.ExitCode != 0:
		return console.WithCode(result.ExitCode, nil)
	}
	return nil
}

// hindrance says what a full workspace did to a command: it was killed, or it
// failed because it could not write.
func hindrance(r *machine.Result) string {
	if r.Signal == "SIGKILL" {
		return "the command was ended"
	}
	return "the command could not write"
}
