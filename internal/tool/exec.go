package tool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/policy"
)

const (
	// execOutput bounds each output of a command in a result.
	execOutput = 32 << 10
	// defaultTimeout ends a command that was given none.
	defaultTimeout = 10 * time.Minute
	maxTimeout     = 24 * time.Hour
)

type execArgs struct {
	Command    string            `json:"command,omitzero" jsonschema:"Shell command, run by /bin/sh -lc. Give either this or argv."`
	Argv       []string          `json:"argv,omitzero" jsonschema:"Program and its arguments, run without a shell."`
	Cwd        string            `json:"cwd,omitzero" jsonschema:"Directory to run in, relative to the workspace or absolute. Default: the workspace."`
	Env        map[string]string `json:"env,omitzero" jsonschema:"Environment variables for this command. Names of secrets are refused."`
	Stdin      string            `json:"stdin,omitzero" jsonschema:"Text for the command's standard input."`
	Timeout    float64           `json:"timeout,omitzero" jsonschema:"Seconds after which the command and all its processes are ended. Default 600; in the background none."`
	Background bool              `json:"background,omitzero" jsonschema:"Start it and return a process id at once; use the process tool to follow it."`
	TTY        bool              `json:"tty,omitzero" jsonschema:"Give it a terminal of 24 lines and 80 columns."`
}

func (a *execArgs) check() (problems []error) {
	add := func(bad bool, text string) {
		if bad {
			problems = append(problems, errors.New(text))
		}
	}
	add((a.Command == "") == (len(a.Argv) == 0), `exactly one of "/command" and "/argv" must be given`)
	add(a.Timeout < 0 || math.IsNaN(a.Timeout) || a.Timeout > maxTimeout.Seconds(),
		fmt.Sprintf(`"/timeout" must be between 0 and %d seconds`, int(maxTimeout.Seconds())))
	add(a.Background && a.Stdin != "", `"/stdin" cannot be given for a command in the background: write to it with the process tool`)
	return problems
}

func execTool() Tool {
	return define(Tool{
		Name:        "exec",
		Description: "Run a command in the sandbox and return its output and exit code; long-running ones in the background.",
	}, runExec)
}

func runExec(ctx context.Context, c *call, a *execArgs) (*Result, error) {
	command, err := c.command(a)
	if err != nil {
		return nil, err
	}
	if a.Background {
		return c.start(ctx, command)
	}
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr, command.OutputLimit = &out, &errs, execOutput
	giveEgress(command, c.at.Egress)
	result, err := c.at.Machine.Exec(ctx, command)
	if err != nil {
		return nil, execFailure(err, command)
	}
	return execResult(result, &ran{out: out.Bytes(), errs: errs.Bytes(), timeout: command.Timeout, denied: c.at.denials(command)}), nil
}

// command is what the arguments ask for, sent to the half that it belongs to.
func (c *call) command(a *execArgs) (*machine.Command, error) {
	environ, err := c.set.environ(a.Env)
	if err != nil {
		return nil, err
	}
	command := &machine.Command{Argv: a.Argv, Shell: a.Command, Env: environ, Dir: c.set.directory(a.Cwd), Timeout: c.timeout(a)}
	if a.Stdin != "" {
		command.Stdin = strings.NewReader(a.Stdin)
	}
	if a.TTY {
		command.TTY = &machine.Size{Rows: 24, Cols: 80}
	}
	if err := c.routeCommand(a, command); err != nil {
		return nil, err
	}
	return command, nil
}

// routeCommand looks whether the command belongs to the networked half. One
// that brings variables along never does by its words alone: PATH, LD_PRELOAD
// and their like would make another program of it.
func (c *call) routeCommand(a *execArgs, command *machine.Command) error {
	if c.half == policy.HalfNetworked || len(a.Env) > 0 {
		return nil
	}
	r := c.set.Router.Argv(a.Argv)
	if a.Command != "" {
		r = c.set.Router.Command(a.Command)
	}
	if r.Half == policy.HalfNetworked {
		command.Argv, command.Shell = r.Argv, ""
	}
	return c.route(r)
}

func (c *call) timeout(a *execArgs) time.Duration {
	switch {
	case a.Timeout > 0:
		return time.Duration(a.Timeout * float64(time.Second))
	case a.Background:
		return 0
	}
	return defaultTimeout
}

// environ is the whole environment of a command. A variable that policy blocks
// is an error, not silently dropped.
func (s *Set) environ(given map[string]string) ([]string, error) {
	env := policy.SanitizeEnv(policy.EnvRequest{Configured: s.Env, Call: given, AllowSecret: s.AllowSecret})
	for _, b := range env.Blocked {
		return nil, errhint.With(fmt.Errorf("environment variable %s: %s", quote(b.Name), b.Reason), "leave it out: secrets stay on the host")
	}
	return s.Environ(env.Passed), nil
}

// directory is where a command runs. Unlike a file tool's path it may be
// anywhere inside.
func (s *Set) directory(cwd string) string {
	if path.IsAbs(cwd) {
		return path.Clean(cwd)
	}
	return path.Join(s.Workdir, cwd)
}

// execFailure names what could not be started.
func execFailure(err error, command *machine.Command) error {
	switch {
	case errors.Is(err, machine.ErrNoDirectory):
		return errhint.With(err, "the workspace is the default; list directories with ls")
	case errors.Is(err, machine.ErrNotFound) && len(command.Argv) > 0:
		return errhint.With(err, "argv is run without a shell: for builtins, pipes and the like use command")
	case errors.Is(err, machine.ErrExhausted):
		return errhint.With(err, "end processes that are not needed: see the process tool")
	}
	return err
}

// ran is a command's output as far as it was kept.
type ran struct {
	out, errs []byte
	timeout   time.Duration
	denied    []string // what egress refused, a line each
}

// execDetails are the fields of an exec result.
type execDetails struct {
	ExitCode    int    `json:"exitCode"`
	Signal      string `json:"signal,omitempty"`
	TimedOut    bool   `json:"timedOut"`
	OOM         bool   `json:"oom"`
	Full        string `json:"full,omitempty"` // the limit of the workspace that it outgrew
	Left        bool   `json:"left"`           // processes of it live on
	DurationMs  int64  `json:"durationMs"`
	CPUMs       int64  `json:"cpuMs"`
	MaxRSS      int64  `json:"maxRss"`
	StdoutBytes int64  `json:"stdoutBytes"`
	StderrBytes int64  `json:"stderrBytes"`
	Truncated   bool   `json:"truncated"`
	// Egress is what was refused to the command.
	Egress []string `json:"egress,omitempty"`
}

func detailsOf(r *machine.Result) execDetails {
	return execDetails{
		ExitCode: r.ExitCode, Signal: r.Signal, TimedOut: r.TimedOut, OOM: r.OOM, Full: string(r.QuotaExceeded), Left: r.Left,
		DurationMs: r.Duration.Milliseconds(), CPUMs: (r.User + r.System).Milliseconds(), MaxRSS: r.MaxRSS,
		StdoutBytes: r.Stdout.Total, StderrBytes: r.Stderr.Total, Truncated: r.Stdout.Lost+r.Stderr.Lost > 0,
	}
}

func execResult(r *machine.Result, o *ran) *Result {
	details := detailsOf(r)
	details.Egress = o.denied
	text := outputs(outputText(o.out, r.Stdout), outputText(o.errs, r.Stderr))
	if details.Truncated {
		text += "[to see all of it, send the output to a file and read that in parts]\n"
	}
	text += denialLines(o.denied)
	return &Result{
		Text:    text + ending(r, o.timeout),
		IsError: r.ExitCode != 0 || r.TimedOut || r.OOM || r.QuotaExceeded != "",
		Details: details,
	}
}

// denialLines are denials for a model.
func denialLines(denied []string) string {
	if len(denied) == 0 {
		return ""
	}
	return "[" + strings.Join(denied, "]\n[") + "]\n"
}

// outputText is one output for a model, with a word at the place of what was
// left out.
func outputText(kept []byte, o machine.Output) string {
	if isBinary(kept) {
		return fmt.Sprintf("[%s of binary output]\n", sizeText(o.Total))
	}
	if o.Lost == 0 {
		return clean(kept)
	}
	head := min(max(o.Head, 0), int64(len(kept)))
	return clean(kept[:head]) + leftOut(int(min(o.Lost, math.MaxInt32))) + clean(kept[head:])
}

// outputs joins the two outputs of a command.
func outputs(out, errs string) string {
	out, errs = endLine(out), endLine(errs)
	if errs != "" {
		errs = "[stderr]\n" + errs
	}
	return out + errs
}

func endLine(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

// ending says how a command ended, in one line.
func ending(r *machine.Result, timeout time.Duration) string {
	how := fmt.Sprintf("exit code %d", r.ExitCode)
	switch {
	case r.TimedOut:
		how = fmt.Sprintf("ended after the timeout of %v: give a longer one, or run it in the background", timeout)
	case r.OOM:
		how = "killed: out of memory"
	case r.QuotaExceeded != "" && r.Signal == "SIGKILL":
		how = "ended: " + r.QuotaExceeded.String() + "; remove files first"
	case r.QuotaExceeded != "":
		how = fmt.Sprintf("exit code %d: nothing can be written, %v; remove files first", r.ExitCode, r.QuotaExceeded)
	case r.Signal != "":
		how = fmt.Sprintf("ended by %s, exit code %d", r.Signal, r.ExitCode)
	}
	if r.PidsLimitHit {
		how += ", the limit of processes was reached and what commands left running was ended"
	}
	if r.Left {
		how += ", processes of it still run"
	}
	return fmt.Sprintf("[%s, %s]", how, durationText(r.Duration))
}

func durationText(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
