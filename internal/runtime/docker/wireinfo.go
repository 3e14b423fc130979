package docker

import (
	"path/filepath"

	"github.com/atoll-run/atoll/internal/sandbox"
)

var _ sandbox.WireInfo = (*Instance)(nil)

// Wire is where the guest listens, and which process it is on this host. Its
// socket is in a directory that only a nearby engine can share.
func (i *Instance) Wire() (socket string, pid int) {
	if i.runtime.options.Transport == TransportAttach {
		return "", 0
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return filepath.Join(i.wire, socketName), i.pid
}
