package dockercli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/machine"
)

// passedOn are the signals that a client hands to its command. Those about the
// terminal's size are the window's matter.
func passedOn() []os.Signal {
	return []os.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM, unix.SIGTERM, unix.SIGCONT}
}

const (
	// maxAsked is how often a command is asked to end; then its client leaves.
	maxAsked = 3
	// tellFor is how long a command that has not begun yet is waited for.
	tellFor = 10 * time.Second
)

// errForced is a client that was told to end again and again.
var errForced = errors.New("got 3 SIGTERM/SIGINTs, forcefully exiting")

// proxy passes the signals that we get on to a command, until stop is called.
// They do not end us meanwhile, but for the last of several.
func proxy(ctx context.Context, m *machine.Machine, id string) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	got, done := make(chan os.Signal, 16), make(chan struct{})
	signal.Notify(got, passedOn()...)
	go func() {
		defer close(done)
		asked := 0
		for {
			select {
			case s := <-got:
				number, _ := s.(syscall.Signal)
				if number == unix.SIGTERM || number == unix.SIGINT {
					asked++
				}
				if asked == maxAsked {
					cancel(errForced)
					return
				}
				tell(ctx, m, id, unix.SignalName(number))
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() { signal.Stop(got); cancel(nil); <-done }
}

// tell sends a signal to a command that runs or is about to. One that is over
// has no use for it.
func tell(ctx context.Context, m *machine.Machine, id, name string) {
	for deadline := time.Now().Add(tellFor); time.Now().Before(deadline); {
		if err := m.Signal(ctx, id, name, false); !errors.Is(err, machine.ErrNoProcess) || sleep(ctx, waitStep) != nil {
			return
		}
	}
}
