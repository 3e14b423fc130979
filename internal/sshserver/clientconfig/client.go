package clientconfig

import (
	"context"
	"os/exec"
	"syscall"
	"time"
)

// endPatience is how long the client may take to end.
const endPatience = 5 * time.Second

// Client returns the program of OpenSSH's client. When ctx ends it is asked to end, and
// not killed: it has the terminal in raw mode, and restores it.
func Client(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = endPatience
	return cmd
}
