package browser

import (
	"context"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
)

// freezeTimeout bounds a signal to the processes of a browser.
const freezeTimeout = 10 * time.Second

// Freeze holds every process of the browser where it is, so that it uses no processor.
// The guest, which serves the wire, is not held. It is done twice: a process that was made
// meanwhile is held the second time.
func (b *Browser) Freeze(ctx context.Context) error { return signalAll(ctx, b.machine, "STOP") }

// Thaw lets the processes of a browser go on.
func (b *Browser) Thaw(ctx context.Context) error { return Thaw(ctx, b.machine) }

// Thaw lets the processes of the browser in a sandbox go on.
func Thaw(ctx context.Context, m *machine.Machine) error { return signalAll(ctx, m, "CONT") }

// signalAll sends a signal to every process of a sandbox but the guest.
func signalAll(ctx context.Context, m *machine.Machine, name string) error {
	result, err := m.Exec(ctx, &machine.Command{Argv: []string{"/bin/sh", "-c", `kill -"$0" -1; kill -"$0" -1; true`, name}, Timeout: freezeTimeout})
	if err != nil {
		return fmt.Errorf("signal %s to the browser: %w", name, err)
	}
	if result.ExitCode != 0 {
		return fmt.Errorf("signal %s to the browser: exit code %d", name, result.ExitCode)
	}
	return nil
}
