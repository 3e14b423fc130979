package dockercli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"

	"github.com/atoll-run/atoll/internal/machine"
)

type execOptions struct {
	stdin, tty, detach bool
	workdir, user      string
	env, envFiles      []string
}

func (c *cli) execVerb() *verb {
	var o execOptions
	return &verb{usage: " [OPTIONS] CONTAINER COMMAND [ARG...]", least: 2, most: -1,
		flags: func(f *flagSet) {
			f.mixed = false
			f.boolean(&o.stdin, "interactive", "i")
			f.boolean(&o.tty, "tty", "t")
			f.boolean(&o.detach, "detach", "d")
			f.text(&o.workdir, "workdir", "w")
			f.text(&o.user, "user", "u")
			f.variables(&o.env)
			f.list(&o.envFiles, "env-file", "")
			f.refuse(whyOpens, "privileged!")
			f.refuse(whyNoVerb, "detach-keys")
		},
		run: func(ctx context.Context, args []string) error { return c.exec(ctx, &o, args[0], args[1:]) }}
}

// exec runs a command in a running container. Its exit code is the command's.
// Unlike docker's client, one that is interrupted takes its command with it.
func (c *cli) exec(ctx context.Context, o *execOptions, ref string, argv []string) error {
	x, err := c.records.find(ref)
	if err != nil {
		return err
	}
	command, err := c.execCommand(o, x, argv)
	if err != nil {
		return asUsage(err)
	}
	m, release, err := c.entry.Enter(ctx, x)
	if err != nil {
		return c.whyNotRunning(ctx, x, ref, err)
	}
	defer release()
	// The guest checks whether the main command runs: asking it first
	// would take as long as many a command.
	if command.While = x.Main.Process; x.Main.Attached && c.entry.Held(attachedLock(x)) {
		command.While = ""
	} else if command.While == "" {
		return c.whyNotRunning(ctx, x, ref, nil)
	}
	if o.detach {
		if _, err = m.Start(ctx, command); errors.Is(err, machine.ErrOver) {
			return c.whyNotRunning(ctx, x, ref, nil)
		}
		return execFailure(argv[0], command.Dir, err)
	}
	restore, err := c.connect(command, o.stdin, o.tty)
	if err != nil {
		return err
	}
	result, err := m.Exec(ctx, command)
	restore()
	switch {
	case errors.Is(err, machine.ErrOver):
		return c.whyNotRunning(ctx, x, ref, nil)
	case errors.Is(err, machine.ErrLost) && x.Guest.hasExited(ctx):
		return &exitError{code: exitUnknown} // the container was stopped or removed
	case err != nil:
		return execFailure(argv[0], command.Dir, err)
	}
	if result.ExitCode != 0 {
		return &exitError{code: result.ExitCode}
	}
	return nil
}

func (c *cli) execCommand(o *execOptions, x *Container, argv []string) (*machine.Command, error) {
	if o.user != "" && !sameUser(o.user, x.User) {
		return nil, &refusal{"--user " + o.user, "everything in a sandbox runs as one user, here " + userText(x.User) + "; nothing inside may become another",
			"leave it out, or make the container with --user " + o.user}
	}
	if o.workdir != "" && !strings.HasPrefix(o.workdir, "/") {
		return nil, fmt.Errorf("the working directory '%s' is invalid, it needs to be an absolute path", o.workdir)
	}
	env, err := readEnv(o.envFiles, o.env, c.Getenv)
	if err != nil {
		return nil, err
	}
	if err := c.entry.AdmitEnv(env); err != nil {
		return nil, err
	}
	command := &machine.Command{Argv: argv, Env: x.environment(env, o.tty), Dir: x.Workdir}
	if o.workdir != "" {
		command.Dir = o.workdir
	}
	return command, nil
}

// sameUser tells whether a user that is asked for is the container's own.
func sameUser(asked, own string) bool {
	return asked == own || userText(asked) == userText(own) || !strings.Contains(asked, ":") && userText(asked) == strings.Split(userText(own), ":")[0]
}

// userText is a user in one way of writing.
func userText(user string) string {
	switch user {
	case "", "root", "0", "root:root", "0:0":
		return "0:0"
	}
	return user
}

// enterRunning enters a container whose main command runs.
func (c *cli) enterRunning(ctx context.Context, x *Container, ref string) (*machine.Machine, func(), error) {
	m, release, err := c.entry.Enter(ctx, x)
	if err == nil && (x.Main.Attached && c.entry.Held(attachedLock(x)) || mainRuns(ctx, m, x)) {
		return m, release, nil
	}
	if err == nil {
		release()
	}
	return nil, nil, c.whyNotRunning(ctx, x, ref, err)
}

// whyNotRunning returns the error of a container that is not running: its state, or
// err.
func (c *cli) whyNotRunning(ctx context.Context, x *Container, ref string, err error) error {
	x, s, lookErr := c.get(ctx, x.ID)
	switch {
	case lookErr != nil:
		return lookErr
	case s == statusPaused:
		return fmt.Errorf("Container %s is paused, unpause the container before exec", ref)
	case s != statusRunning:
		return notRunning(x)
	}
	return errors.Join(err, notRunning(x))
}

func notRunning(x *Container) error {
	return fmt.Errorf("Container %s is not running", x.ID)
}

// connect sets the command's streams to ours, and a terminal with -t.
func (c *cli) connect(command *machine.Command, stdin, tty bool) (restore func(), err error) {
	command.Stdout, command.Stderr = c.Out, c.Err
	if err := c.checkTerminal(stdin, tty); err != nil {
		return nil, err
	}
	if stdin {
		command.Stdin = c.In
	}
	if !tty {
		return func() {}, nil
	}
	w, err := c.openRawTerminal(stdin)
	if err != nil {
		return nil, err
	}
	command.TTY, command.Resize = &w.size, w.sizes
	return w.leave, nil
}

// execFailure returns an engine's error for a command that did not start.
func execFailure(program, dir string, err error) error {
	if err == nil {
		return nil
	}
	if neverStarted(err) {
		words, code := startFailure("exec", program, dir, err)
		return &exitError{code: code, raw: true, err: errors.New(words)}
	}
	if errors.Is(err, io.ErrClosedPipe) || errors.Is(err, syscall.EPIPE) {
		return &exitError{code: exitFailure} // the reader of our output closed the pipe
	}
	if written, ok := errors.AsType[*fs.PathError](err); ok {
		return &plainError{written}
	}
	return err
}

// neverStarted tells a command that could not be started from one that ran.
func neverStarted(err error) bool {
	return errors.Is(err, machine.ErrNotFound) || errors.Is(err, machine.ErrNotExecutable) || errors.Is(err, machine.ErrNoDirectory)
}
