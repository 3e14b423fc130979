package provide

import (
	"context"
	"fmt"

	"github.com/atoll-run/atoll/internal/sandbox"
)

// OpenDoor records that a browser is reached through a port of this machine, until closed
// is called or this process ends.
func (a *Installation) OpenDoor(ctx context.Context, name string, d sandbox.Door, port int) (closed func(), err error) {
	lock, err := a.Locks.Share(ctx, doorLock(name, d, port))
	if err != nil {
		return nil, err
	}
	if err := a.Registry.OpenDoor(ctx, name, d, port); err != nil {
		lock.Release()
		return nil, err
	}
	return func() {
		lock.Release()
		if a.isOpen(name, d, port) {
			return // for another connection
		}
		if err := a.Registry.CloseDoor(context.WithoutCancel(ctx), name, d, port); err != nil {
			a.Logger.Warn("a door of a browser", "sandbox", name, "error", err)
		}
	}, nil
}

// doorLock is shared by all who keep a door open. It ends with them, however they end.
func doorLock(name string, d sandbox.Door, port int) string {
	return fmt.Sprintf("door %s %s %d", d, name, port)
}

func (a *Installation) isOpen(name string, d sandbox.Door, port int) bool {
	held, err := a.Locks.IsHeld(doorLock(name, d, port))
	return held && err == nil
}

// WithDoors forgets doors whose process has died.
func (a *Installation) WithDoors(e *sandbox.Entry) {
	if e.Imported {
		return
	}
	if e.CDPPort != 0 && !a.isOpen(e.ContainerName, sandbox.DoorCDP, e.CDPPort) {
		e.CDPPort = 0
	}
	if e.NoVNCPort != 0 && !a.isOpen(e.ContainerName, sandbox.DoorWindow, e.NoVNCPort) {
		e.NoVNCPort = 0
	}
}
