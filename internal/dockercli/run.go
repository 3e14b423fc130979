package dockercli

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
)

func (c *cli) runVerb() *verb {
	var o createOptions
	detach, signals := false, true
	return &verb{usage: " [OPTIONS] IMAGE [COMMAND] [ARG...]", least: 1, most: -1,
		flags: func(f *flagSet) {
			o.add(f)
			f.boolean(&detach, "detach", "d")
			f.boolean(&signals, "sig-proxy", "")
		},
		run: func(ctx context.Context, args []string) error {
			if !signals {
				return asUsage(&refusal{"--sig-proxy=false", "a client that stays passes signals on, and its command ends with it", "run -d, and docker logs -f"})
			}
			return asRun(c.run(ctx, &o, detach, args))
		}}
}

// asRun gives failures of run itself docker's code for them.
func asRun(err error) error {
	if err == nil {
		return nil
	}
	if end, ok := errors.AsType[*exitError](err); ok && end.err == nil {
		return err
	} else if ok && end.code >= exitUsage {
		return &exitError{code: end.code, raw: end.raw, err: &runError{end.err}}
	}
	_, isUsage := errors.AsType[*usageError](err)
	_, isPlain := errors.AsType[*plainError](err)
	if isUsage || isPlain {
		return err
	}
	return &exitError{code: exitUsage, err: &runError{err}}
}

// runError is a failure of run itself, which says so.
type runError struct{ error }

func (e *runError) Unwrap() error { return e.error }

func (c *cli) run(ctx context.Context, o *createOptions, detach bool, args []string) error {
	if detach && len(o.attach) > 0 {
		return &plainError{errors.New("conflicting options: cannot specify both --attach and --detach")}
	}
	if err := c.checkTerminal(o.stdin && !detach, o.tty); err != nil {
		return err
	}
	o.detached = detach
	x, err := c.create(ctx, o, args)
	if err != nil {
		return err
	}
	if !detach {
		return c.runAttached(ctx, x, o.stdin)
	}
	unlock, err := c.lock(ctx, x.Name)
	if err != nil {
		return err
	}
	defer unlock()
	if err := c.startMain(ctx, x); err != nil {
		_, code := startFailure("create", "", "", err)
		return c.failedRun(ctx, x, &exitError{code: max(code, x.Main.ExitCode), err: err})
	}
	fmt.Fprintln(c.Out, x.ID)
	return nil
}

// failedRun removes a container that never ran, if --rm was given.
func (c *cli) failedRun(ctx context.Context, x *Container, err error) error {
	if x.AutoRemove {
		return errors.Join(err, c.remove(context.WithoutCancel(ctx), x))
	}
	return err
}

// runAttached runs the main command with our streams and waits for its end. It is a
// command of this process, so nothing that it prints can be lost.
func (c *cli) runAttached(ctx context.Context, x *Container, stdin bool) error {
	mine, err := c.lock(ctx, attachedLock(x))
	if err != nil {
		return err
	}
	defer mine()
	m, release, err := c.startForAttached(ctx, x)
	if err != nil {
		return c.failedRun(ctx, x, err)
	}
	defer release()
	command := x.mainCommand()
	if err := c.publish(ctx, x, command); err != nil {
		return errors.Join(err, c.finish(ctx, x, nil))
	}
	command.Stdin, command.TTY, command.ID = nil, nil, x.Main.Attended
	restore, err := c.connect(command, stdin, x.TTY)
	if err != nil {
		return errors.Join(err, c.finish(ctx, x, nil))
	}
	c.discardUnattached(x, command)
	stop := c.recordOutput(x, command)
	working, over := forwardSignals(ctx, m, command.ID)
	result, err := m.Exec(working, command)
	if cause := context.Cause(working); cause != nil {
		err = cause
	}
	over()
	restore()
	stop()
	return c.recordAttachedEnd(ctx, x, result, err)
}

// discardUnattached discards the streams that are not attached. Without any output
// the id of the container is printed.
func (c *cli) discardUnattached(x *Container, command *machine.Command) {
	if !x.shows("stdout") {
		command.Stdout = io.Discard
	}
	if !x.shows("stderr") {
		command.Stderr = io.Discard
	}
	if !x.shows("stdout") && !x.shows("stderr") {
		fmt.Fprintln(c.Out, x.ID)
	}
}

// recordAttachedEnd records how an attached command ended, and returns its exit code.
func (c *cli) recordAttachedEnd(ctx context.Context, x *Container, result *machine.Result, err error) error {
	if err != nil {
		end := c.attendedFailure(x, err)
		if result == nil {
			result = &machine.Result{ExitCode: cmp.Or(x.Main.ExitCode, exitUnknown)}
		}
		return errors.Join(end, c.finish(ctx, x, result))
	}
	if err := c.finish(ctx, x, result); err != nil {
		return err
	}
	if result.ExitCode != 0 {
		return &exitError{code: result.ExitCode}
	}
	return nil
}

// attendedFailure returns the error of an attached command that has no result: it
// did not start, its output was closed, or its sandbox was removed.
func (c *cli) attendedFailure(x *Container, err error) error {
	written, isOutput := errors.AsType[*fs.PathError](err)
	switch {
	case neverStarted(err):
		x.Main.Started = time.Time{}
		x.Main.Error, x.Main.ExitCode = startFailure("create", x.argv()[0], x.Workdir, err)
		return &exitError{code: x.Main.ExitCode, err: errors.New(x.Main.Error)}
	case isOutput:
		return &plainError{written}
	case errors.Is(err, errRepeatedSignal):
		return &plainError{err}
	case errors.Is(err, machine.ErrLost):
		return &exitError{code: exitUnknown}
	}
	return err
}

func (c *cli) startForAttached(ctx context.Context, x *Container) (*machine.Machine, func(), error) {
	unlock, err := c.lock(ctx, x.Name)
	if err != nil {
		return nil, nil, err
	}
	defer unlock()
	m, release, err := c.startSandbox(ctx, x)
	if err != nil {
		return nil, nil, err
	}
	x.Main = MainCommand{Attached: true, Attended: rand.Text(), Started: time.Now().UTC()}
	return m, release, c.records.save(x)
}

// finish records the end of an attached command, and stops the sandbox. It does not
// end with the caller's context.
func (c *cli) finish(ctx context.Context, x *Container, result *machine.Result) error {
	ctx = context.WithoutCancel(ctx)
	unlock, err := c.lock(ctx, x.Name)
	if err != nil {
		return err
	}
	defer unlock()
	x.Main.Attached, x.Main.Attended, x.Main.Finished, x.Main.ExitCode, x.Guest = false, "", time.Now().UTC(), exitUnknown, nil
	x.Main.setResult(result)
	if now, err := c.records.load(x.Name); errors.Is(err, os.ErrNotExist) || err == nil && now.ID != x.ID {
		return nil // removed meanwhile
	}
	if err := c.containers.End(ctx, x); err != nil {
		return err
	}
	if x.AutoRemove {
		return c.remove(ctx, x)
	}
	return c.records.save(x)
}

// maxSavedOutput bounds what is kept of each output for `docker logs`.
const maxSavedOutput = 1 << 20

// recordOutput also saves the beginning of the command's output for `docker logs`. A
// full disk must not end the command.
func (c *cli) recordOutput(x *Container, command *machine.Command) (stop func()) {
	var files []*os.File
	tee := func(stream string, to io.Writer) io.Writer {
		file, err := os.OpenFile(c.records.outputPath(x.Name, stream), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
		if err != nil {
			return to
		}
		files = append(files, file)
		return io.MultiWriter(to, &truncatingWriter{file, maxSavedOutput})
	}
	command.Stdout, command.Stderr = tee("stdout", command.Stdout), tee("stderr", command.Stderr)
	return func() {
		for _, file := range files {
			_ = file.Close()
		}
		files = nil
	}
}

// truncatingWriter writes up to its limit, marks where it cut, and never fails.
type truncatingWriter struct {
	to   io.Writer
	room int
}

func (f *truncatingWriter) Write(p []byte) (int, error) {
	n := min(len(p), f.room)
	_, _ = f.to.Write(p[:n])
	if f.room > 0 && n < len(p) {
		_, _ = io.WriteString(f.to, "\n[the rest was not kept]\n")
	}
	f.room -= n
	return len(p), nil
}
