package linux

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/wire"
)

const (
	// dialTimeout bounds Dial where the caller's context does not.
	dialTimeout = 15 * time.Second
	// How long to wait between two attempts while a guest starts.
	firstRetry = 200 * time.Microsecond
	lastRetry  = 5 * time.Millisecond
	// lastWordsLimit is how much of the guest's output an error shows.
	lastWordsLimit = 2000
)

// Dial opens a wire on the socket in the shared directory, waiting for a guest
// that is still starting. Only the sandbox's process 1 is accepted as the peer.
func (i *Instance) Dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := i.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("sandbox %q: %w", i.name, err)
	}
	if err := i.checkPeer(conn); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("sandbox %q: %w", i.name, err)
	}
	return conn, nil
}

func (i *Instance) connect(ctx context.Context) (net.Conn, error) {
	for retry := firstRetry; ; retry = min(2*retry, lastRetry) {
		if err := i.checkRunning(); err != nil {
			return nil, err
		}
		conn, err := wire.DialSocket(ctx, i.path(wireDir+"/"+socketName))
		if err == nil || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ECONNREFUSED) {
			return conn, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("guest does not listen: %w (%w)", err, ctx.Err())
		case <-time.After(retry):
		}
	}
}

// checkRunning returns an error with the end of the guest's log if it has ended.
func (i *Instance) checkRunning() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.record.Run.alive() {
		return nil
	}
	if now, err := load(i.dir); err == nil && now.Summary.ID == i.record.Summary.ID { // another process may have started it
		i.record = now
	}
	if i.updateSeen(); i.seen.State == sandbox.StateRunning {
		return nil
	}
	return fmt.Errorf("%w: it is %s%s", sandbox.ErrNotRunning, i.seen.State, i.logTail())
}

// logTail returns the end of the guest's log, for the error that it has ended.
func (i *Instance) logTail() string {
	f, err := os.Open(i.path(logFile))
	if err != nil {
		return ""
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, lastWordsLimit))
	words := strings.TrimSpace(strings.ToValidUTF8(string(text), "?"))
	if words == "" {
		return ""
	}
	return ", its last words: " + words
}

// checkPeer refuses a connection whose peer is not the sandbox's process 1, by
// SO_PEERCRED.
func (i *Instance) checkPeer(conn net.Conn) error {
	pid, err := wire.PeerPID(conn)
	if err != nil {
		return err
	}
	if err := i.checkRunning(); err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if first := i.record.Run.PID; pid != first {
		return errhint.With(fmt.Errorf("guest socket was replaced from inside: process %d listens on it, the guest is process %d: %w", pid, first, sandbox.ErrDenied),
			"something in the sandbox posed as the guest: recreate the sandbox, and look at what ran in it")
	}
	return nil
}
