package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// The variables that say where the gateway of this user is.
const (
	stateVariable   = "ATOLL_STATE_DIR"
	programVariable = "ATOLL_PROGRAM"
)

// Local returns a client of this user's own gateway on this machine: the one that
// answers at the socket in the state directory (ATOLL_STATE_DIR, ~/.atoll), or a private
// one that the program atoll (ATOLL_PROGRAM) starts. A private gateway ends a minute
// after its last use.
func Local(ctx context.Context) (*Client, error) {
	socket, err := localSocket()
	if err != nil {
		return nil, err
	}
	if !answers(ctx, socket) {
		if socket, err = startPrivate(ctx); err != nil {
			return nil, err
		}
	}
	return New(Options{Socket: socket})
}

// localSocket returns where this user's gateway listens.
func localSocket() (string, error) {
	state := os.Getenv(stateVariable)
	if state == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("client: %w", err)
		}
		state = filepath.Join(home, ".atoll")
	}
	return filepath.Join(state, "gateway.sock"), nil
}

// answers reports whether a process accepts connections at a socket.
func answers(ctx context.Context, socket string) bool {
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", socket)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// startPrivate returns the socket of a gateway that the program atoll starts.
func startPrivate(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, cmp.Or(os.Getenv(programVariable), "atoll"), "gateway", "--background")
	out, err := cmd.Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) && len(failed.Stderr) > 0 {
		return "", fmt.Errorf("client: no gateway runs, and none could be started: %s", strings.TrimSpace(string(failed.Stderr)))
	}
	if err != nil {
		return "", fmt.Errorf("client: no gateway runs, and none could be started: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}
