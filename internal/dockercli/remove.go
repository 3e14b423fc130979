package dockercli

import (
	"context"
	"errors"
	"fmt"
)

func (c *cli) rmVerb() *verb {
	var force, volumes bool
	return &verb{usage: " [OPTIONS] CONTAINER [CONTAINER...]", least: 1, most: -1,
		flags: func(f *flagSet) {
			f.boolean(&force, "force", "f")
			f.boolean(&volumes, "volumes", "v") // a sandbox has none of its own that would stay
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
		failed = failed || !isMissing || !force // with --force a missing container is no error
	}
	if failed {
		return &exitError{code: exitFailure}
	}
	return nil
}

func (c *cli) rm(ctx context.Context, ref string, force bool) error {
	x, err := c.records.find(ref)
	if err != nil {
		return err
	}
	if !force {
		s, err := c.currentStatus(ctx, x)
		if err == nil && (s == statusRunning || s == statusPaused) {
			first := "Stop"
			if s == statusPaused {
				first = "Unpause and then stop"
			}
			//nolint:staticcheck // docker's words
			return fmt.Errorf("You cannot remove a %s container %s. %s the container before attempting removal or force remove", s, x.ID, first)
		}
	}
	unlock, err := c.lock(ctx, x.Name)
	if err != nil {
		return err
	}
	defer unlock()
	return c.remove(ctx, x)
}
