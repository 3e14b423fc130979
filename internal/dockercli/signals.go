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

// forwardedSignals are the signals that a client forwards to its command. SIGWINCH
// is handled by rawTerminal.
func forwardedSignals() []os.Signal {
	return []os.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM, unix.SIGTERM, unix.SIGCONT}
}

const (
	// maxSignals is after how many SIGTERM or SIGINT the client exits.
	maxSignals = 3
	// startGrace is how long a signal waits for a command that has not started yet.
	startGrace = 10 * time.Second
)

// errRepeatedSignal ends a client that was sent SIGTERM or SIGINT several times.
var errRepeatedSignal = errors.New("got 3 SIGTERM/SIGINTs, forcefully exiting")

// forwardSignals forwards signals to a command until stop is called. They do not end
// this process, but for the third SIGTERM or SIGINT.
func forwardSignals(ctx context.Context, m *machine.Machine, id string) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	got, done := make(chan os.Signal, 16), make(chan struct{})
	signal.Notify(got, forwardedSignals()...)
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
				if asked == maxSignals {
					cancel(errRepeatedSignal)
					return
				}
				sendSignal(ctx, m, id, unix.SignalName(number))
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() { signal.Stop(got); cancel(nil); <-done }
}

// sendSignal sends a signal to a command that runs or is about to. An ended command
// is no error.
func sendSignal(ctx context.Context, m *machine.Machine, id, name string) {
	for deadline := time.Now().Add(startGrace); time.Now().Before(deadline); {
		if err := m.Signal(ctx, id, name, false); !errors.Is(err, machine.ErrNoProcess) || sleep(ctx, waitStep) != nil {
			return
		}
	}
}
