package docker

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/atoll-run/atoll/internal/sandbox"
)

// Pause holds every process of the sandbox where it is.
func (i *Instance) Pause(ctx context.Context) error {
	_, err := ask(ctx, i.runtime.engine, func(c *client.Client) (client.ContainerPauseResult, error) {
		return c.ContainerPause(ctx, i.id, client.ContainerPauseOptions{})
	})
	return i.reached(ctx, sandbox.StatePaused, err)
}

// Resume lets a paused sandbox go on.
func (i *Instance) Resume(ctx context.Context) error {
	_, err := ask(ctx, i.runtime.engine, func(c *client.Client) (client.ContainerUnpauseResult, error) {
		return c.ContainerUnpause(ctx, i.id, client.ContainerUnpauseOptions{})
	})
	return i.reached(ctx, sandbox.StateRunning, err)
}

// reached accepts a refusal if the sandbox is already where it should be.
func (i *Instance) reached(ctx context.Context, want sandbox.State, err error) error {
	state, lookErr := i.State(ctx)
	switch {
	case lookErr != nil:
		return lookErr
	case state == want:
		return nil
	case err != nil:
		return fmt.Errorf("container %q: %w", i.name, err)
	}
	return fmt.Errorf("container %q is %s, not %s: %w", i.name, state, want, sandbox.ErrNotRunning)
}

var _ sandbox.Measurer = (*Instance)(nil)

// Usage asks the engine for one measurement.
func (i *Instance) Usage(ctx context.Context) (sandbox.Usage, error) {
	stats, err := ask(ctx, i.runtime.engine, func(c *client.Client) (client.ContainerStatsResult, error) {
		return c.ContainerStats(ctx, i.id, client.ContainerStatsOptions{})
	})
	if err != nil {
		return sandbox.Usage{}, fmt.Errorf("container %q: usage: %w", i.name, err)
	}
	defer stats.Body.Close()
	var sample container.StatsResponse
	if err := json.NewDecoder(stats.Body).Decode(&sample); err != nil {
		return sandbox.Usage{}, fmt.Errorf("container %q: usage: %w", i.name, i.runtime.engine.explain(err))
	}
	return sandbox.Usage{
		Memory:      sample.MemoryStats.Usage - min(sample.MemoryStats.Usage, inactiveFile(sample.MemoryStats.Stats)),
		MemoryLimit: sample.MemoryStats.Limit,
		CPU:         sample.CPUStats.CPUUsage.TotalUsage,
		Pids:        sample.PidsStats.Current,
	}, nil
}

// inactiveFile is the cache that the kernel can drop: cgroup v1, then v2.
func inactiveFile(stats map[string]uint64) uint64 {
	if v, ok := stats["total_inactive_file"]; ok {
		return v
	}
	return stats["inactive_file"]
}
