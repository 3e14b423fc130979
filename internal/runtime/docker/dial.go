package docker

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/wire"
)

// dialTimeout bounds Dial where the caller's context does not.
const dialTimeout = 15 * time.Second

// stateCheckDelay is how long attempts may fail before we look whether the sandbox
// still runs; then the time doubles.
const stateCheckDelay = 100 * time.Millisecond

// Dial opens a wire, waiting for a guest that is still starting: on the socket
// in the shared directory, or by attaching to a process inside.
func (i *Instance) Dial(ctx context.Context) (net.Conn, error) {
	if i.runtime.options.Transport == TransportAttach {
		conn, err := i.attach(ctx)
		if err != nil {
			return nil, fmt.Errorf("container %q: %w", i.name, err)
		}
		return conn, nil
	}
	return i.dialSocket(ctx)
}

func (i *Instance) dialSocket(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := i.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("container %q: %w", i.name, err)
	}
	if err := i.checkPeer(ctx, conn); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("container %q: %w", i.name, err)
	}
	return conn, nil
}

func (i *Instance) connect(ctx context.Context) (net.Conn, error) {
	retry, look := firstRetry, time.Now().Add(stateCheckDelay)
	for wait := stateCheckDelay; ; {
		conn, err := wire.DialSocket(ctx, filepath.Join(i.wire, socketName))
		if err == nil || !isStarting(err) && ctx.Err() == nil {
			return conn, err
		}
		if ctx.Err() == nil && time.Now().After(look) {
			if err := i.checkRunning(ctx); err != nil && ctx.Err() == nil {
				return nil, err
			}
			wait *= 2
			look = time.Now().Add(wait)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("guest does not listen: %w (%w)", err, ctx.Err())
		case <-time.After(retry):
			retry = min(2*retry, lastRetry)
		}
	}
}

// checkRunning inspects the container again, and returns an error with the end of
// the guest's log if it has ended.
func (i *Instance) checkRunning(ctx context.Context) error {
	state, err := i.State(ctx)
	if err != nil || state == sandbox.StateRunning {
		return err
	}
	return fmt.Errorf("%w: it is %s%s", sandbox.ErrNotRunning, state, i.logTail(ctx))
}

// checkPeer lets only the container's first process pass. If another process
// listens, the container may have been restarted since we looked.
func (i *Instance) checkPeer(ctx context.Context, conn net.Conn) error {
	pid, err := wire.PeerPID(conn)
	if err != nil {
		return err
	}
	if pid == i.firstProcess() {
		return nil
	}
	if err := i.checkRunning(ctx); err != nil {
		return err
	}
	if first := i.firstProcess(); pid != first {
		return errhint.With(fmt.Errorf("guest socket was replaced from inside: process %d listens on it, the guest is process %d: %w", pid, first, sandbox.ErrDenied),
			"something in the sandbox posed as the guest: recreate the sandbox, and look at what ran in it")
	}
	return nil
}

func (i *Instance) firstProcess() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.pid
}
