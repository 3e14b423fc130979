package plan

import (
	"fmt"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/hostpath"
)

// socketSearch remembers which directories were too large to look at every
// file for sockets of the host.
type socketSearch struct {
	hostpath.Disk
	large []string
}

// SocketsBelow looks for sockets as hostpath.Disk does.
func (d *socketSearch) SocketsBelow(dir string) (found []string, complete bool) {
	found, complete = d.Disk.SocketsBelow(dir)
	if !complete {
		d.large = append(d.large, dir)
	}
	return found, complete
}

// warnings say what was not looked at.
func (d *socketSearch) warnings() (list []config.Problem) {
	for _, dir := range d.large {
		list = append(list, config.Problem{
			Path: "sandbox.docker.binds",
			Message: fmt.Sprintf("%s holds more than %d files, or directories more than %d deep: sockets of the host beyond were looked for by their path only",
				dir, hostpath.MaxLookEntries, hostpath.MaxLookDepth),
			Hint: "bind a smaller directory",
		})
	}
	return list
}
