package dockercli

import (
	"context"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
)

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

// waitStep is how often the status of a container with an attached client is read.
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
		result, err := c.waitOnce(ctx, x)
		if err != nil {
			return 0, err
		}
		if result != nil {
			code = result.ExitCode
		}
	}
}

// waitOnce waits for the end of a command, or for one step.
func (c *cli) waitOnce(ctx context.Context, x *Container) (*machine.Result, error) {
	m, release, err := c.entry.Enter(ctx, x)
	if err != nil && x.Main.Attached {
		err = nil // it may have ended: the next step finds out
	}
	if m == nil {
		return nil, errors.Join(ignore(ignoreLost(err), ErrNoSandbox), sleep(ctx, waitStep))
	}
	defer release()
	result, err := m.Wait(ctx, x.Main.signalTarget())
	if err == nil && x.Main.Process != "" {
		return result, nil
	}
	return result, errors.Join(ctx.Err(), ignoreLost(ignore(err, machine.ErrNoProcess)), sleep(ctx, waitStep))
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// ignoreLost ignores a lost connection: the next step finds out why.
func ignoreLost(err error) error { return ignore(err, machine.ErrLost) }
