package sandboxes

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"strings"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// The bounds of a command.
const (
	MaxStdin           = 3 << 20
	DefaultOutput      = 1 << 20
	MaxOutput          = 4 << 20
	maxArguments       = 4096
	maxCommand         = 128 << 10
	maxCommandSeconds  = MaxTimeoutSeconds
	maxWorkdir         = 4096
	shellOfCommandLine = "/bin/sh"
)

// Command returns the command that a request describes, in this sandbox.
func (i *Inside) Command(q *api.ExecRequest) (*machine.Command, error) {
	command, err := i.Record.command(q, i.live.names.environment())
	if err != nil {
		return nil, err
	}
	command.Grant = i.live.names.grantID()
	return command, nil
}

// command is Command with the variables that egress needs.
func (r *Record) command(q *api.ExecRequest, more map[string]string) (*machine.Command, error) {
	if err := checkExec(q); err != nil {
		return nil, err
	}
	env := policy.SanitizeEnv(policy.EnvRequest{Configured: r.Details.Env, Call: q.Env, AllowSecret: r.Details.AllowSecret})
	for _, blocked := range env.Blocked {
		return nil, &InvalidError{"/env/" + blocked.Name, blocked.Reason}
	}
	passed := map[string]string{"PATH": cmp.Or(r.Details.SearchPath, provide.DefaultPath)}
	if r.Details.Workdir != "" {
		passed["HOME"] = r.Details.Workdir
	}
	maps.Copy(passed, more)
	maps.Copy(passed, env.Passed)
	return &machine.Command{
		Argv: q.Argv, Shell: q.Command, Env: sandbox.EnvList(passed), Dir: r.Path(q.Dir), Timeout: time.Duration(q.TimeoutSeconds * float64(time.Second)),
	}, nil
}

// Path returns an absolute path inside; relative ones begin at the working directory.
func (r *Record) Path(inside string) string {
	if path.IsAbs(inside) {
		return path.Clean(inside)
	}
	return path.Join(r.Details.Workdir, inside)
}

func checkExec(q *api.ExecRequest) error {
	size := len(q.Command)
	for _, argument := range q.Argv {
		size += len(argument) + 1
	}
	switch {
	case (len(q.Argv) == 0) == (q.Command == ""):
		return &InvalidError{"/argv", "exactly one of argv and command must be given"}
	case len(q.Argv) > maxArguments || size > maxCommand:
		return &InvalidError{"/argv", fmt.Sprintf("has more than %d arguments or %d bytes", maxArguments, maxCommand)}
	case q.TimeoutSeconds < 0 || q.TimeoutSeconds > maxCommandSeconds || math.IsNaN(q.TimeoutSeconds):
		return &InvalidError{"/timeoutSeconds", fmt.Sprintf("must be from 0 to %d", maxCommandSeconds)}
	case q.OutputBytes < 0 || q.OutputBytes > MaxOutput:
		return &InvalidError{"/outputBytes", fmt.Sprintf("must be from 1 to %d", MaxOutput)}
	case len(q.Stdin) > MaxStdin:
		return &InvalidError{"/stdin", fmt.Sprintf("has more than %d bytes", MaxStdin)}
	case len(q.Dir) > maxWorkdir:
		return &InvalidError{"/dir", fmt.Sprintf("has more than %d bytes", maxWorkdir)}
	}
	return checkEnv(q.Env)
}

// Exec runs a command, after it is recorded in the audit log, and waits for its end.
// A command that cannot be started is a result: the exit codes are those of a shell.
func (s *Service) Exec(i *Inside, command *machine.Command) (*api.ExecResult, error) {
	if err := s.record(i.Record, command); err != nil {
		return nil, err
	}
	result, err := i.Machine.Exec(i.Ctx, command)
	switch {
	case err == nil:
		return resultOf(result), nil
	case errors.Is(err, machine.ErrNotFound), errors.Is(err, machine.ErrNotExecutable), errors.Is(err, machine.ErrNoDirectory):
		return &api.ExecResult{ExitCode: machine.ExitStatus(err), Error: err.Error()}, nil
	case errors.Is(err, machine.ErrInvalid):
		return nil, &InvalidError{"/", err.Error()}
	}
	return nil, i.Explain(err)
}

// record writes a command to the audit log.
func (s *Service) record(r *Record, command *machine.Command) error {
	program, arguments := shellOfCommandLine, 2
	if len(command.Argv) > 0 {
		program, arguments = command.Argv[0], len(command.Argv)-1
	}
	return s.Audit(&audit.ExecEvent{
		Time: s.Now(), Sandbox: r.Name, Program: program, Arguments: arguments,
		Subject: audit.Subject{Account: r.Account, Agent: cmp.Or(r.agent, config.APIAgent), Session: r.Details.SessionKey, Run: r.run()},
	})
}

// run returns the id of the run that has the sandbox, "" if none does.
func (r *Record) run() string {
	_, key := policy.ScopeAccount(r.Details.SessionKey)
	if id, ok := strings.CutPrefix(key, run.SessionOf(r.agent, "")); ok && r.IsOfAgent() {
		return id
	}
	return ""
}

// exitTimeout is the exit code of a command that ran out of time, as of timeout(1).
const exitTimeout = 124

func resultOf(r *machine.Result) *api.ExecResult {
	answer := &api.ExecResult{
		ExitCode: r.ExitCode, Signal: r.Signal, TimedOut: r.TimedOut, OOM: r.OOM, StdoutLost: r.Stdout.Lost, StderrLost: r.Stderr.Lost, DurationMs: r.Duration.Milliseconds(),
		Usage: &api.ExecUsage{UserMs: r.User.Milliseconds(), SystemMs: r.System.Milliseconds(), MemoryBytes: r.MaxRSS},
	}
	if r.TimedOut {
		answer.ExitCode = exitTimeout
	}
	if r.QuotaExceeded != "" {
		answer.QuotaFull = r.QuotaExceeded.String()
	}
	return answer
}
