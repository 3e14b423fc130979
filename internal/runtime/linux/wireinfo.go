package linux

import "github.com/atoll-run/atoll/internal/sandbox"

var _ sandbox.WireInfo = (*Instance)(nil)

// Wire is where the guest listens, and which process it is.
func (i *Instance) Wire() (socket string, pid int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.record.Run.alive() {
		return "", 0
	}
	return i.path(wireDir + "/" + socketName), i.record.Run.PID
}
