package dockercli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
)

// startAttached starts one container and shows its output.
func (c *cli) startAttached(ctx context.Context, args []string) error {
	if len(args) > 1 {
		return localError("you cannot start and attach multiple containers at once")
	}
	x, s, err := c.get(ctx, args[0])
	if err != nil {
		return err
	}
	if s == statusRunning || s == statusPaused {
		return c.attach(ctx, x, x.OpenStdin, true)
	}
	x.Attach, x.Detached = nil, false // this client shows the output
	return c.runAttached(ctx, x, x.OpenStdin)
}

func (c *cli) attachVerb() *verb {
	noStdin, signals := false, true
	return &verb{usage: " [OPTIONS] CONTAINER", least: 1, most: 1,
		flags: func(f *flagSet) {
			f.boolean(&noStdin, "no-stdin", "")
			f.boolean(&signals, "sig-proxy", "")
			f.refuse(whyNoVerb, "detach-keys")
		},
		run: func(ctx context.Context, args []string) error {
			x, s, err := c.get(ctx, args[0])
			switch {
			case err != nil:
				return err
			case s == statusPaused:
				return localError("You cannot attach to a paused container, unpause it first")
			case s != statusRunning:
				return localError("You cannot attach to a stopped container, start it first")
			}
			return c.attach(ctx, x, x.OpenStdin && !noStdin, signals)
		}}
}

// attach follows a main command from now on, until it ends. Signals are passed
// on to it, but for one that has a terminal, where keys are.
func (c *cli) attach(ctx context.Context, x *Container, stdin, signals bool) error {
	if x.Main.Process == "" {
		return fmt.Errorf("container %s is attended by the `run` that made it", x.Name)
	}
	m, release, err := c.enterRunning(ctx, x, x.Name)
	if err != nil {
		return err
	}
	defer release()
	p, err := m.Process(ctx, x.Main.Process)
	if err != nil {
		return err
	}
	leave, err := c.connectAttached(ctx, m, x, stdin)
	if err != nil {
		return err
	}
	from := machine.LogRequest{Stdout: p.Stdout, Stderr: p.Stderr}
	following, over := ctx, func() {}
	if signals && !x.TTY {
		following, over = forwardSignals(ctx, m, x.Main.Process)
	}
	result, err := c.follow(following, m, x.Main.Process, from)
	forced := errors.Is(context.Cause(following), errRepeatedSignal)
	over()
	leave()
	switch {
	case forced:
		return &plainError{errRepeatedSignal}
	case errors.Is(err, machine.ErrLost):
		return &exitError{code: exitUnknown} // the container was removed
	case err != nil:
		return err
	}
	if result.ExitCode != 0 {
		return &exitError{code: result.ExitCode}
	}
	return nil
}

// connectAttached forwards input to a main command and, if it has a terminal, its size.
func (c *cli) connectAttached(ctx context.Context, m *machine.Machine, x *Container, stdin bool) (leave func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	leave = cancel
	if x.TTY {
		w, err := c.openRawTerminal(stdin)
		if err != nil {
			cancel()
			return nil, err
		}
		go w.show(ctx, m, x.Main.Process)
		leave = func() {
			w.leave()
			cancel()
		}
	}
	if stdin {
		go c.forwardInput(ctx, m, x)
	}
	return leave, nil
}

// forwardInput forwards standard input. Its end closes the command's input, unless
// the command was started detached.
func (c *cli) forwardInput(ctx context.Context, m *machine.Machine, x *Container) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := c.In.Read(buffer)
		if m.Write(ctx, x.Main.Process, buffer[:n], err != nil && x.stdinOnce()) != nil || err != nil {
			return
		}
	}
}

// followStep is how long a guest waits for more output before it answers.
const followStep = 20 * time.Second

// follow prints output as it comes, until the command ends.
func (c *cli) follow(ctx context.Context, m *machine.Machine, id string, from machine.LogRequest) (*machine.Result, error) {
	for {
		from.Wait = followStep
		logs, err := m.Logs(ctx, id, from)
		if err != nil {
			return nil, err
		}
		_, errOut := io.WriteString(c.Out, joinFrom(logs.Stdout, from.Stdout))
		_, errErr := io.WriteString(c.Err, joinFrom(logs.Stderr, from.Stderr))
		if err := errors.Join(errOut, errErr); err != nil {
			return nil, err
		}
		from.Stdout, from.Stderr = logs.Stdout.Next, logs.Stderr.Next
		if r := logs.Process.Result; r != nil && from.Stdout >= r.Stdout.Total && from.Stderr >= r.Stderr.Total {
			return r, nil
		}
	}
}

// joinFrom is the part of an output from an offset on.
func joinFrom(log machine.Log, from int64) string {
	shifted := slices.Clone(log.Chunks)
	for i := range shifted {
		shifted[i].Offset -= from
	}
	return joinLog(machine.Log{Chunks: shifted})
}
