package provide

import (
	"context"
	"fmt"

	"github.com/atoll-run/atoll/internal/sandbox"
)

// OpenEndpoint records that a browser is reached through a port of this machine, until closed
// is called or this process ends.
func (a *Installation) OpenEndpoint(ctx context.Context, name string, d sandbox.Endpoint, port int) (closed func(), err error) {
	lock, err := a.Locks.Share(ctx, endpointLock(name, d, port))
	if err != nil {
		return nil, err
	}
	if err := a.Registry.OpenEndpoint(ctx, name, d, port); err != nil {
		lock.Release()
		return nil, err
	}
	return func() {
		lock.Release()
		if a.isOpen(name, d, port) {
			return // for another connection
		}
		if err := a.Registry.CloseEndpoint(context.WithoutCancel(ctx), name, d, port); err != nil {
			a.Logger.Warn("an endpoint of a browser", "sandbox", name, "error", err)
		}
	}, nil
}

// endpointLock names a file lock that every process which uses the endpoint holds shared; the kernel releases it with the process.
func endpointLock(name string, d sandbox.Endpoint, port int) string {
	return fmt.Sprintf("endpoint %s %s %d", d, name, port)
}

func (a *Installation) isOpen(name string, d sandbox.Endpoint, port int) bool {
	held, err := a.Locks.IsHeld(endpointLock(name, d, port))
	return held && err == nil
}

// WithEndpoints forgets endpoints whose process has died.
func (a *Installation) WithEndpoints(e *sandbox.Entry) {
	if e.Imported {
		return
	}
	if e.CDPPort != 0 && !a.isOpen(e.ContainerName, sandbox.EndpointCDP, e.CDPPort) {
		e.CDPPort = 0
	}
	if e.NoVNCPort != 0 && !a.isOpen(e.ContainerName, sandbox.EndpointWindow, e.NoVNCPort) {
		e.NoVNCPort = 0
	}
}
