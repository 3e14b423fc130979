package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
)

const (
	// cleanupTimeout bounds what is done after a failure, when the caller's own
	// time may be over.
	cleanupTimeout = 30 * time.Second
	// pollInterval is how often we look whether a container has come or gone.
	pollInterval = 50 * time.Millisecond
	// lateNews is how long an engine may take to notice that a container ended.
	lateNews = 2 * time.Second
	// lastWordsLimit is how much of the guest's output an error shows.
	lastWordsLimit = 2000
)

// Start makes the sandbox run; nothing to do if it does. What its bind mounts
// lead to is checked before, and what appeared inside after: on a mismatch the
// container is removed.
func (i *Instance) Start(ctx context.Context) error {
	found, err := i.inspectAgain(ctx)
	if err != nil {
		return err
	}
	switch stateOf(found.State.Status) {
	case sandbox.StateRunning:
		return nil
	case sandbox.StatePaused:
		return i.Resume(ctx)
	}
	if err := i.begin(ctx, found); err != nil {
		if errors.Is(err, errSourceReplaced) {
			err = errors.Join(err, i.removeNow(ctx))
		}
		return fmt.Errorf("container %q: start: %w", i.name, err)
	}
	return nil
}

func (i *Instance) begin(ctx context.Context, found *container.InspectResponse) error {
	pins, err := pinsOf(found)
	if err != nil {
		return err
	}
	if err := checkUnchanged(i.checked, pins); err != nil {
		return err
	}
	if err := emptyWire(i.wire); err != nil {
		return fmt.Errorf("wire directory: %w", err)
	}
	_, err = ask(ctx, i.runtime.engine, func(c *client.Client) (client.ContainerStartResult, error) {
		return c.ContainerStart(ctx, i.id, client.ContainerStartOptions{})
	})
	if err != nil {
		return startHint(err)
	}
	if err := i.checkRunning(ctx); err != nil {
		return err
	}
	err = checkMounted(i.firstProcess(), pins)
	if errors.Is(err, errProcessGone) {
		return i.startFailure(ctx, err)
	}
	return err
}

// startFailure waits until the engine has noticed, too, that a container's first
// process is gone, and can say why.
func (i *Instance) startFailure(ctx context.Context, gone error) error {
	ctx, cancel := context.WithTimeout(ctx, lateNews)
	defer cancel()
	for {
		if err := i.checkRunning(ctx); err != nil {
			return err
		}
		if pause(ctx, pollInterval) != nil {
			return gone
		}
	}
}

// startHint adds what to do about the failures that a configuration causes.
func startHint(err error) error {
	text := err.Error()
	for _, known := range []struct{ words, hint string }{
		{"chdir to cwd", "the sandbox's user may not enter workdir: change docker.user, or the directory's owner"},
		{"could not select device driver", "install the NVIDIA container toolkit, or remove docker.gpus"},
		{"error setting rlimit", "the engine may not raise that limit: lower docker.ulimits"},
		{"apparmor", "load the profile first, or remove docker.apparmorProfile"},
	} {
		if strings.Contains(text, known.words) {
			return errhint.With(err, known.hint)
		}
	}
	return err
}

// logTail returns the end of the guest's log, for the error that it has ended.
func (i *Instance) logTail(ctx context.Context) string {
	log, err := ask(ctx, i.runtime.engine, func(c *client.Client) (client.ContainerLogsResult, error) {
		return c.ContainerLogs(ctx, i.id, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Tail: "20"})
	})
	if err != nil {
		return ""
	}
	defer log.Close()
	var out bytes.Buffer
	_, _ = stdcopy.StdCopy(&out, &out, io.LimitReader(log, lastWordsLimit))
	text := strings.TrimSpace(strings.ToValidUTF8(out.String(), "?"))
	if text == "" {
		return ""
	}
	return ", its last words: " + text
}

// Stop asks the guest to end, and kills it after grace. The engine counts whole
// seconds, so grace is rounded up.
func (i *Instance) Stop(ctx context.Context, grace time.Duration) error {
	seconds := int(math.Ceil(max(grace, 0).Seconds()))
	_, err := ask(ctx, i.runtime.engine, func(c *client.Client) (client.ContainerStopResult, error) {
		return c.ContainerStop(ctx, i.id, client.ContainerStopOptions{Timeout: &seconds})
	})
	return i.ended(ctx, "stop", err)
}

// Kill ends every process of the sandbox, whatever they do.
func (i *Instance) Kill(ctx context.Context) error {
	_, err := ask(ctx, i.runtime.engine, func(c *client.Client) (client.ContainerKillResult, error) {
		return c.ContainerKill(ctx, i.id, client.ContainerKillOptions{Signal: "SIGKILL"})
	})
	return i.ended(ctx, "kill", err)
}

// ended waits until the container runs no more. An engine's refusal is judged
// by where the container is: one that did not run, or is gone, is what the
// caller wanted.
func (i *Instance) ended(ctx context.Context, verb string, err error) error {
	if err != nil && (ctx.Err() != nil || errors.Is(err, sandbox.ErrUnavailable)) {
		return fmt.Errorf("container %q: %s: %w", i.name, verb, err)
	}
	for {
		state, lookErr := i.State(ctx)
		switch {
		case errors.Is(lookErr, sandbox.ErrNotFound):
			return nil
		case lookErr != nil:
			return lookErr
		case state != sandbox.StateRunning && state != sandbox.StatePaused:
			return nil
		case err != nil:
			return fmt.Errorf("container %q: %s: %w", i.name, verb, err)
		}
		if err := pause(ctx, pollInterval); err != nil {
			return fmt.Errorf("container %q: %s: %w", i.name, verb, err)
		}
	}
}

// Remove takes the container away with its anonymous volumes and its wire, and
// returns when it is gone.
func (i *Instance) Remove(ctx context.Context) error {
	if err := i.runtime.discard(ctx, i.id); err != nil {
		return fmt.Errorf("container %q: remove: %w", i.name, err)
	}
	if i.layered {
		if err := i.runtime.removeLayers(ctx, i.name); err != nil {
			return fmt.Errorf("container %q: layers: %w", i.name, err)
		}
	}
	if err := i.runtime.removeOverlays(ctx, i.overlays); err != nil {
		return fmt.Errorf("container %q: %w", i.name, err)
	}
	if err := os.RemoveAll(i.wire); err != nil {
		return fmt.Errorf("container %q: wire directory: %w", i.name, err)
	}
	return nil
}

// removeNow removes in time of its own.
func (i *Instance) removeNow(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	return i.Remove(ctx)
}

// mostRemovals is how often an engine is asked to remove a container that it could not kill:
// on a busy machine processes end later than it waits for them.
const mostRemovals = 3

// requestRemoval asks the engine to remove a container, running or not.
func (r *Runtime) requestRemoval(ctx context.Context, id string) (err error) {
	for range mostRemovals {
		_, err = ask(ctx, r.engine, func(c *client.Client) (client.ContainerRemoveResult, error) {
			return c.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		})
		if !couldNotKill(err) || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// discard removes a container by its id, running or not. Someone else may be
// removing it already: then it is enough to wait.
func (r *Runtime) discard(ctx context.Context, id string) error {
	err := r.requestRemoval(ctx, id)
	if isNotFound(err) {
		return nil
	}
	if err != nil && !isConflict(err) {
		return err
	}
	for {
		_, lookErr := r.inspect(ctx, id)
		if errors.Is(lookErr, sandbox.ErrNotFound) {
			return nil
		}
		if lookErr != nil {
			return lookErr
		}
		if waitErr := pause(ctx, pollInterval); waitErr != nil {
			return errors.Join(err, waitErr)
		}
	}
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
