package dockercli

import (
	"context"
	"fmt"
)

func (c *cli) pauseVerb() *verb   { return c.pauseVerbs(true) }
func (c *cli) unpauseVerb() *verb { return c.pauseVerbs(false) }

func (c *cli) pauseVerbs(paused bool) *verb {
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
	return c.setPaused(ctx, x.Name, paused)
}

// setPaused pauses or resumes a sandbox, and then records it: in this order, so that
// a running container is never refused as paused.
func (c *cli) setPaused(ctx context.Context, name string, paused bool) error {
	unlock, err := c.lock(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	x, err := c.records.load(name)
	if err != nil {
		return err
	}
	if err := c.containers.Pause(ctx, x, paused); err != nil || x.Guest == nil {
		return err
	}
	x.Guest.Paused = paused
	return c.records.save(x)
}
