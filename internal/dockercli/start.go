package dockercli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
)

func (c *cli) startVerb() *verb {
	var attach, stdin bool
	return &verb{usage: " [OPTIONS] CONTAINER [CONTAINER...]", least: 1, most: -1,
		flags: func(f *flagSet) {
			f.boolean(&attach, "attach", "a")
			f.boolean(&stdin, "interactive", "i")
			f.refuse(whyNoVerb, "checkpoint", "checkpoint-dir", "detach-keys")
		},
		run: func(ctx context.Context, args []string) error {
			if attach || stdin {
				return c.startAttached(ctx, args)
			}
			return c.each(args, "failed to start containers", func(ref string) error { return c.start(ctx, ref) })
		}}
}

// each does something with every container that is named, prints the names of
// those with which it worked, and says at the end with which it did not.
func (c *cli) each(refs []string, summary string, do func(ref string) error) error {
	var failed []string
	for _, ref := range refs {
		if err := do(ref); err != nil {
			c.complain(err)
			failed = append(failed, ref)
			continue
		}
		fmt.Fprintln(c.Out, ref)
	}
	switch {
	case len(failed) == 0:
		return nil
	case summary == "":
		return &exitError{code: exitFailure}
	}
	return localError("Error: " + summary + ": " + strings.Join(failed, ", "))
}

// start starts a container's sandbox and main command; nothing if it runs.
func (c *cli) start(ctx context.Context, ref string) error {
	x, s, err := c.get(ctx, ref)
	switch {
	case err != nil:
		return err
	case s == statusRunning:
		return nil
	case s == statusPaused:
		return errors.New("cannot start a paused container, try unpause instead")
	}
	unlock, err := c.lock(ctx, x.Name)
	if err != nil {
		return err
	}
	defer unlock()
	return c.startMain(ctx, x)
}

// startMain starts the sandbox, and in it the main command. The lock is held.
func (c *cli) startMain(ctx context.Context, x *Container) error {
	m, release, err := c.startSandbox(ctx, x)
	if err != nil {
		return err
	}
	defer release()
	command := x.mainCommand()
	if err := c.publish(ctx, x, command); err != nil {
		return errors.Join(err, c.containers.End(ctx, x))
	}
	id, err := m.Start(ctx, command)
	if err != nil {
		return errors.Join(c.recordStartFailure(ctx, x, err), c.containers.End(ctx, x))
	}
	x.Main = MainCommand{Process: id, Started: time.Now().UTC()}
	return c.records.save(x)
}

// startSandbox starts the sandbox and enters it.
func (c *cli) startSandbox(ctx context.Context, x *Container) (*machine.Machine, func(), error) {
	if err := c.containers.Start(ctx, x); err != nil {
		return nil, nil, err
	}
	m, release, err := c.entry.Enter(ctx, x)
	if err != nil {
		return nil, nil, errors.Join(err, c.containers.End(ctx, x))
	}
	if x.Home == "" {
		x.Home = homeOf(ctx, m, x.User)
	}
	return m, release, nil
}

// recordStartFailure records that the main command could not be started.
func (c *cli) recordStartFailure(ctx context.Context, x *Container, err error) error {
	words, code := startFailure("create", x.argv()[0], x.Workdir, err)
	x.Main = MainCommand{ExitCode: code, Error: words, Finished: time.Now().UTC()}
	return errors.Join(&exitError{code: exitFailure, err: errors.New(words)}, c.records.save(x))
}

// mainCommand is the container's own command for the guest.
func (c *Container) mainCommand() *machine.Command {
	command := &machine.Command{Argv: c.argv(), Env: c.environment(nil, c.TTY), Dir: c.Workdir}
	if c.TTY {
		command.TTY = &machine.Size{Rows: 24, Cols: 80}
	}
	if c.OpenStdin {
		command.Stdin = strings.NewReader("") // stays open for attach
	}
	return command
}

// startFailure returns an engine's words and exit code for a program that cannot be
// started.
func startFailure(verb, program, dir string, err error) (words string, code int) {
	reason := fmt.Sprintf("exec: %q: %s", program, oneLine(err))
	code = machine.ExitStatus(err)
	switch {
	case errors.Is(err, machine.ErrNotFound) && strings.Contains(program, "/"):
		reason = fmt.Sprintf("exec: %q: stat %s: no such file or directory", program, program)
	case errors.Is(err, machine.ErrNotFound):
		reason = fmt.Sprintf("exec: %q: executable file not found in $PATH", program)
	case errors.Is(err, machine.ErrNotExecutable):
		reason = fmt.Sprintf("exec: %q: permission denied", program)
	case errors.Is(err, machine.ErrNoDirectory):
		reason, code = fmt.Sprintf("chdir to cwd (%q) set in config.json failed: no such file or directory", dir), 126
	}
	if verb == "exec" {
		return "OCI runtime exec failed: exec failed: unable to start container process: " + reason + ": unknown", code
	}
	return "failed to create task for container: failed to create shim task: OCI runtime create failed: runc create failed: " +
		"unable to start container process: " + reason + ": unknown", code
}

// oneLine is an error on one line.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// maxPasswd bounds what is read of a container's list of users.
const maxPasswd = 256 << 10

// homeOf is the home directory that the list of users inside gives a user, as
// engines set it. The list is the sandbox's: nothing but HOME depends on it.
func homeOf(ctx context.Context, m *machine.Machine, user string) string {
	home := "/"
	if user, _, _ = strings.Cut(user, ":"); user == "" || user == "0" || user == "root" {
		user, home = "0", "/root"
	}
	files, err := guestfs.New(m, []guestfs.Root{{Path: "/", ReadOnly: true}})
	if err != nil {
		return home
	}
	content, err := files.Read(ctx, "/etc/passwd", &guestfs.ReadOptions{Limit: maxPasswd})
	if err != nil {
		return home
	}
	for line := range strings.Lines(string(content.Data)) {
		fields := strings.Split(strings.TrimRight(line, "\n"), ":")
		if len(fields) >= 6 && (fields[0] == user || fields[2] == user) && strings.HasPrefix(fields[5], "/") {
			return fields[5]
		}
	}
	return home
}
