package dockercli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
)

func (c *cli) startVerb() *verb {
	var attach, stdin bool
	return &verb{usage: " [OPTIONS] CONTAINER [CONTAINER...]", least: 1, most: -1,
		flags: func(f *flagSet) {
			f.truth(&attach, "attach", "a")
			f.truth(&stdin, "interactive", "i")
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
		return &exit{code: exitFailure}
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
	unlock, err := c.boxes.Lock(ctx, x.Name)
	if err != nil {
		return err
	}
	defer unlock()
	return c.launch(ctx, x)
}

// launch starts the sandbox, and in it the main command. The lock is held.
func (c *cli) launch(ctx context.Context, x *Container) error {
	m, release, err := c.wake(ctx, x)
	if err != nil {
		return err
	}
	defer release()
	id, err := m.Start(ctx, x.mainCommand())
	if err != nil {
		return errors.Join(c.stillborn(ctx, x, err), c.boxes.End(ctx, x))
	}
	x.Main = Life{Process: id, Started: time.Now().UTC()}
	return c.shelf.save(x)
}

// wake starts the sandbox and enters it.
func (c *cli) wake(ctx context.Context, x *Container) (*machine.Machine, func(), error) {
	if err := c.boxes.Start(ctx, x); err != nil {
		return nil, nil, err
	}
	m, release, err := c.boxes.Enter(ctx, x)
	if err != nil {
		return nil, nil, errors.Join(err, c.boxes.End(ctx, x))
	}
	if x.Home == "" {
		x.Home = homeOf(ctx, m, x.User)
	}
	return m, release, nil
}

// stillborn notes a main command that could not be started.
func (c *cli) stillborn(ctx context.Context, x *Container, err error) error {
	words, code := startFailure("create", x.argv()[0], x.Workdir, err)
	x.Main = Life{ExitCode: code, Error: words, Finished: time.Now().UTC()}
	return errors.Join(&exit{code: exitFailure, err: errors.New(words)}, c.shelf.save(x))
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

// startFailure is what an engine says of a program that it cannot start.
func startFailure(verb, program, dir string, err error) (words string, code int) {
	reason := fmt.Sprintf("exec: %q: %s", program, lastWords(err))
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

// lastWords is an error on one line.
func lastWords(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// maxPasswd bounds what is read of a container's list of users.
const maxPasswd = 256 << 10

// homeOf is the home directory that the list of users inside gives a user, as
// engines set it. The list is the sandbox's: nothing but HOME depends on it.
func homeOf(ctx context.Context, m *machine.Machine, user string) string {
	home := "/"
	if user, _, _ = strings.Cut(user, ":"); user == "" || user == "0" || user == "root" {
		user, home = "0", "/root"
	}
	files, err := m.Files([]machine.Root{{Path: "/", ReadOnly: true}})
	if err != nil {
		return home
	}
	content, err := files.Read(ctx, "/etc/passwd", &machine.ReadOptions{Limit: maxPasswd})
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

func (c *cli) stopVerb() *verb {
	grace := int64(-1)
	var name string
	return &verb{usage: " [OPTIONS] CONTAINER [CONTAINER...]", least: 1, most: -1,
		flags: func(f *flagSet) {
			f.number(&grace, "timeout", "t")
			f.number(&grace, "time", "")
			f.text(&name, "signal", "s")
		},
		run: func(ctx context.Context, args []string) error {
			return c.each(args, "", func(ref string) error { return c.stop(ctx, ref, name, grace) })
		}}
}

// defaultGrace is how long docker waits between asking and killing.
const defaultGrace = 10

// stop ends the main command, asking first, and the sandbox with it.
func (c *cli) stop(ctx context.Context, ref, name string, grace int64) error {
	x, s, err := c.get(ctx, ref)
	if err != nil || s != statusRunning {
		return err
	}
	if grace < 0 {
		if grace = x.StopAfter; grace == 0 {
			grace = defaultGrace
		}
	}
	for _, other := range []string{x.StopSignal, "SIGTERM"} {
		if name == "" {
			name = other
		}
	}
	signal, err := signalName(name)
	if err != nil {
		return err
	}
	return c.endMain(ctx, x, signal, time.Duration(grace)*time.Second)
}

// endMain sends a signal, waits, and buries what is left.
func (c *cli) endMain(ctx context.Context, x *Container, signal string, grace time.Duration) error {
	if x.Main.Attached {
		if err := c.endAttended(ctx, x, signal, grace); err != nil {
			return err
		}
	}
	unlock, err := c.boxes.Lock(ctx, x.Name)
	if err != nil {
		return err
	}
	defer unlock()
	if state, err := c.again(ctx, x); err != nil || state != StateRunning {
		return ignore(err, ErrNoSandbox)
	}
	m, release, err := c.boxes.Enter(ctx, x)
	if err != nil {
		return errors.Join(c.boxes.End(ctx, x), c.shelf.save(x)) // it does not answer: from outside
	}
	defer release()
	if err := askToEnd(ctx, m, x.Main.Process, signal, grace); err != nil {
		return err
	}
	return c.bury(ctx, x, m)
}

// askToEnd sends a signal to a command, and ends it if it goes on for longer.
func askToEnd(ctx context.Context, m *machine.Machine, id, signal string, grace time.Duration) error {
	if id == "" {
		return nil
	}
	if err := m.Signal(ctx, id, signal, false); err != nil {
		return ignore(err, machine.ErrNoProcess)
	}
	wait, cancel := context.WithTimeout(ctx, grace)
	_, _ = m.Wait(wait, id)
	cancel()
	if runs(ctx, m, id) {
		_ = m.End(ctx, id, 0)
	}
	return nil
}

// leaveFor is how long the client that attends to a command has to note its end.
const leaveFor = 10 * time.Second

// endAttended ends a command whose client notes its end. That takes the
// container's lock, which is therefore not held.
func (c *cli) endAttended(ctx context.Context, x *Container, signal string, grace time.Duration) error {
	m, release, err := c.boxes.Enter(ctx, x)
	if err != nil {
		return ignore(err, ErrNoSandbox)
	}
	defer release()
	if err := askToEnd(ctx, m, x.Main.Attended, signal, grace); err != nil {
		return err
	}
	for deadline := time.Now().Add(leaveFor); c.boxes.Held(attachedLock(x)) && time.Now().Before(deadline); {
		if err := sleep(ctx, waitStep); err != nil {
			return err
		}
	}
	return nil
}

// again reads a record that others may have changed before we had its lock, and
// looks at its sandbox; ErrNoSandbox if it was removed.
func (c *cli) again(ctx context.Context, x *Container) (State, error) {
	now, err := c.shelf.load(x.Name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && now.ID != x.ID {
		return "", ErrNoSandbox
	} else if err != nil {
		return "", err
	}
	*x = *now
	return c.boxes.State(ctx, x)
}

// signalName reads "9", "KILL" and "SIGKILL".
func signalName(text string) (string, error) {
	if n, err := strconv.Atoi(text); err == nil {
		for name, number := range signals() {
			if number == n {
				return "SIG" + name, nil
			}
		}
	}
	name := strings.TrimPrefix(strings.ToUpper(text), "SIG")
	if _, ok := signals()[name]; !ok {
		return "", fmt.Errorf("Invalid signal: %s", text) //nolint:staticcheck // docker's words
	}
	return "SIG" + name, nil
}

func signals() map[string]int {
	return map[string]int{"HUP": 1, "INT": 2, "QUIT": 3, "ABRT": 6, "KILL": 9, "USR1": 10, "USR2": 12, "PIPE": 13, "ALRM": 14, "TERM": 15,
		"CONT": 18, "STOP": 19, "TSTP": 20, "WINCH": 28}
}

func (c *cli) killVerb() *verb {
	name := "KILL"
	return &verb{usage: " [OPTIONS] CONTAINER [CONTAINER...]", least: 1, most: -1,
		flags: func(f *flagSet) { f.text(&name, "signal", "s") },
		run: func(ctx context.Context, args []string) error {
			return c.each(args, "", func(ref string) error { return c.kill(ctx, ref, name) })
		}}
}

func (c *cli) kill(ctx context.Context, ref, name string) error {
	signal, err := signalName(name)
	if err != nil {
		return err
	}
	x, s, err := c.get(ctx, ref)
	if err != nil {
		return fmt.Errorf("Cannot kill container: %s: %w", ref, err) //nolint:staticcheck // docker's words
	}
	if s != statusRunning {
		return fmt.Errorf("Cannot kill container: %s: Container %s is not running", ref, x.ID) //nolint:staticcheck // docker's words
	}
	if signal == "SIGKILL" {
		return c.endMain(ctx, x, "SIGKILL", time.Second)
	}
	m, release, err := c.boxes.Enter(ctx, x)
	if err != nil {
		return err
	}
	defer release()
	return m.Signal(ctx, x.Main.told(), signal, false)
}

func (c *cli) restartVerb() *verb {
	grace := int64(-1)
	var name string
	return &verb{usage: " [OPTIONS] CONTAINER [CONTAINER...]", least: 1, most: -1,
		flags: func(f *flagSet) {
			f.number(&grace, "timeout", "t")
			f.number(&grace, "time", "")
			f.text(&name, "signal", "s")
		},
		run: func(ctx context.Context, args []string) error {
			return c.each(args, "", func(ref string) error {
				if err := c.stop(ctx, ref, name, grace); err != nil {
					return err
				}
				return c.start(ctx, ref)
			})
		}}
}

func (c *cli) rmVerb() *verb {
	var force, volumes bool
	return &verb{usage: " [OPTIONS] CONTAINER [CONTAINER...]", least: 1, most: -1,
		flags: func(f *flagSet) {
			f.truth(&force, "force", "f")
			f.truth(&volumes, "volumes", "v") // a sandbox has none of its own that would stay
			f.refuse(whyNoNet, "link,l!")
		},
		run: func(ctx context.Context, args []string) error { return c.removeAll(ctx, args, force) }}
}

func (c *cli) removeAll(ctx context.Context, refs []string, force bool) error {
	failed := false
	for _, ref := range refs {
		err := c.rm(ctx, ref, force)
		if err == nil {
			fmt.Fprintln(c.Out, ref)
			continue
		}
		c.complain(err)
		_, isMissing := errors.AsType[*noContainer](err)
		failed = failed || !isMissing || !force // what is gone need not go
	}
	if failed {
		return &exit{code: exitFailure}
	}
	return nil
}

func (c *cli) rm(ctx context.Context, ref string, force bool) error {
	x, err := c.shelf.find(ref)
	if err != nil {
		return err
	}
	if !force {
		s, err := c.look(ctx, x)
		if err == nil && (s == statusRunning || s == statusPaused) {
			first := "Stop"
			if s == statusPaused {
				first = "Unpause and then stop"
			}
			//nolint:staticcheck // docker's words
			return fmt.Errorf("You cannot remove a %s container %s. %s the container before attempting removal or force remove", s, x.ID, first)
		}
	}
	unlock, err := c.boxes.Lock(ctx, x.Name)
	if err != nil {
		return err
	}
	defer unlock()
	return c.remove(ctx, x)
}

func (c *cli) pauseVerb() *verb   { return c.pausing(true) }
func (c *cli) unpauseVerb() *verb { return c.pausing(false) }

func (c *cli) pausing(paused bool) *verb {
	return &verb{usage: " CONTAINER [CONTAINER...]", least: 1, most: -1,
		run: func(ctx context.Context, args []string) error {
			return c.each(args, "", func(ref string) error { return c.pause(ctx, ref, paused) })
		}}
}

func (c *cli) pause(ctx context.Context, ref string, paused bool) error {
	x, s, err := c.get(ctx, ref)
	switch {
	case err != nil:
		return err
	case paused && s == statusPaused:
		return fmt.Errorf("Container %s is already paused", x.ID)
	case paused && s != statusRunning:
		return fmt.Errorf("Container %s is not running", x.ID)
	case !paused && s != statusPaused:
		return fmt.Errorf("Container %s is not paused", x.ID)
	}
	return c.hold(ctx, x.Name, paused)
}

// hold pauses a sandbox, or lets it go on, and notes that its guest does not
// answer meanwhile: in this order, so that nobody is kept from one that runs.
func (c *cli) hold(ctx context.Context, name string, paused bool) error {
	unlock, err := c.boxes.Lock(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	x, err := c.shelf.load(name)
	if err != nil {
		return err
	}
	if err := c.boxes.Pause(ctx, x, paused); err != nil || x.Guest == nil {
		return err
	}
	x.Guest.Paused = paused
	return c.shelf.save(x)
}

func (c *cli) waitVerb() *verb {
	return &verb{usage: " CONTAINER [CONTAINER...]", least: 1, most: -1,
		run: func(ctx context.Context, args []string) error {
			for _, ref := range args {
				code, err := c.wait(ctx, ref)
				if err != nil {
					return err
				}
				_, _ = io.WriteString(c.Out, strconv.Itoa(code)+"\n")
			}
			return nil
		}}
}

// waitStep is how often a container is looked at whose command another process
// attends to.
const waitStep = 100 * time.Millisecond

// wait returns the exit code of a container's main command, also of one that is
// removed while it is waited for.
func (c *cli) wait(ctx context.Context, ref string) (int, error) {
	code, seen := exitUnknown, false
	for {
		x, s, err := c.get(ctx, ref)
		switch {
		case isMissing(err) && seen:
			return code, nil
		case err != nil:
			return 0, err
		case s != statusRunning && s != statusPaused:
			return x.Main.ExitCode, nil
		}
		seen = true
		result, err := c.waitABit(ctx, x)
		if err != nil {
			return 0, err
		}
		if result != nil {
			code = result.ExitCode
		}
	}
}

// waitABit waits for the end of a command, or until it is to be looked at again.
func (c *cli) waitABit(ctx context.Context, x *Container) (*machine.Result, error) {
	m, release, err := c.boxes.Enter(ctx, x)
	if err != nil && x.Main.Attached {
		err = nil // it may have ended: the next look says
	}
	if m == nil {
		return nil, errors.Join(ignore(ignoreLost(err), ErrNoSandbox), sleep(ctx, waitStep))
	}
	defer release()
	result, err := m.Wait(ctx, x.Main.told())
	if err == nil && x.Main.Process != "" {
		return result, nil
	}
	return result, errors.Join(ctx.Err(), ignoreLost(ignore(err, machine.ErrNoProcess)), sleep(ctx, waitStep))
}

// sleep waits, unless the time of the caller is over.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// ignoreLost leaves a sandbox that went away while it was waited for to the
// next look.
func ignoreLost(err error) error { return ignore(err, machine.ErrLost) }
