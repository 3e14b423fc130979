package machine

import (
	"context"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
)

// KeepFiles makes the guest serve files for so long after the signal that ends the sandbox,
// so that they can be fetched; 0 is not at all. ErrUnsupported is a guest that cannot.
func (m *Machine) KeepFiles(ctx context.Context, wait time.Duration) error {
	return m.terminate(ctx, &wire.Terminate{WaitMs: wait.Milliseconds()})
}

// EndCommands ends all commands in a sandbox that is about to end, and returns when they
// have. They end with ErrTerminated, and no other starts. Files are served for so long.
func (m *Machine) EndCommands(ctx context.Context, wait time.Duration) error {
	return m.terminate(ctx, &wire.Terminate{WaitMs: wait.Milliseconds(), End: true})
}

func (m *Machine) terminate(ctx context.Context, asked *wire.Terminate) error {
	if !asked.Valid() {
		return fmt.Errorf("a guest serves files for %v at most", wire.MaxTerminateWait)
	}
	return m.Call(ctx, &UnaryCall{Request: &wire.Request{Op: wire.OpTerminate, Terminate: asked}}, &struct{}{})
}
