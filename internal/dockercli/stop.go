package dockercli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
)

func (c *cli) stopVerb() *verb { return c.endingVerb(c.stop) }

// endingVerb is a verb that stops containers, and takes docker's flags for that.
func (c *cli) endingVerb(do func(ctx context.Context, ref, signal string, grace int64) error) *verb {
	grace := int64(-1)
	var name string
	return &verb{usage: " [OPTIONS] CONTAINER [CONTAINER...]", least: 1, most: -1,
		flags: func(f *flagSet) {
			f.number(&grace, "timeout", "t")
			f.number(&grace, "time", "")
			f.text(&name, "signal", "s")
		},
		run: func(ctx context.Context, args []string) error {
			return c.each(args, "", func(ref string) error { return do(ctx, ref, name, grace) })
		}}
}

// defaultGrace is how long docker waits between asking and killing.
const defaultGrace = 10

// stop sends the main command a signal, kills it after the grace period, and stops
// the sandbox.
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
	return c.stopMain(ctx, x, signal, time.Duration(grace)*time.Second)
}

// stopMain sends a signal, waits, and records the end.
func (c *cli) stopMain(ctx context.Context, x *Container, signal string, grace time.Duration) error {
	if x.Main.Attached {
		if err := c.endAttended(ctx, x, signal, grace); err != nil {
			return err
		}
	}
	unlock, err := c.lock(ctx, x.Name)
	if err != nil {
		return err
	}
	defer unlock()
	if state, err := c.reload(ctx, x); err != nil || state != StateRunning {
		return ignore(err, ErrNoSandbox)
	}
	m, release, err := c.entry.Enter(ctx, x)
	if err != nil {
		return errors.Join(c.containers.End(ctx, x), c.records.save(x)) // the guest does not answer: kill the sandbox from outside
	}
	defer release()
	if err := signalThenKill(ctx, m, x.Main.Process, signal, grace); err != nil {
		return err
	}
	return c.finishMain(ctx, x, m)
}

// signalThenKill sends a signal to a command, and kills it after the grace period.
func signalThenKill(ctx context.Context, m *machine.Machine, id, signal string, grace time.Duration) error {
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

// attachedGrace is how long an attached client may take to record its command's end.
const attachedGrace = 10 * time.Second

// endAttended stops a command whose attached client records its end. The client
// takes the container's lock for that, so it is not held here.
func (c *cli) endAttended(ctx context.Context, x *Container, signal string, grace time.Duration) error {
	m, release, err := c.entry.Enter(ctx, x)
	if err != nil {
		return ignore(err, ErrNoSandbox)
	}
	defer release()
	if err := signalThenKill(ctx, m, x.Main.Attended, signal, grace); err != nil {
		return err
	}
	for deadline := time.Now().Add(attachedGrace); c.entry.Held(attachedLock(x)) && time.Now().Before(deadline); {
		if err := sleep(ctx, waitStep); err != nil {
			return err
		}
	}
	return nil
}

// reload reads a record again after its lock was taken, and returns the state of its
// sandbox; ErrNoSandbox if it was removed.
func (c *cli) reload(ctx context.Context, x *Container) (State, error) {
	now, err := c.records.load(x.Name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && now.ID != x.ID {
		return "", ErrNoSandbox
	} else if err != nil {
		return "", err
	}
	*x = *now
	return c.entry.State(ctx, x)
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
		return c.stopMain(ctx, x, "SIGKILL", time.Second)
	}
	m, release, err := c.entry.Enter(ctx, x)
	if err != nil {
		return err
	}
	defer release()
	return m.Signal(ctx, x.Main.signalTarget(), signal, false)
}

func (c *cli) restartVerb() *verb {
	return c.endingVerb(func(ctx context.Context, ref, signal string, grace int64) error {
		if err := c.stop(ctx, ref, signal, grace); err != nil {
			return err
		}
		return c.start(ctx, ref)
	})
}
