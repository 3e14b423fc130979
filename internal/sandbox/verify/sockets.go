package verify

import (
	"fmt"
	"path"
	"strings"

	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// Sockets are those of the host's programs that a sandbox could connect to,
// because they lie in a directory that it sees, and what else was found there.
type Sockets struct {
	Found     []string // as paths inside
	Partly    []string // mounts that were too large to look at every file
	Elsewhere bool     // the mounts are on another machine, and nothing is known
	SetID     []string // set-user-ID and set-group-ID programs that it could change
}

// hostSockets looks for them from outside, where nothing can be hidden from it.
func hostSockets(spec *sandbox.Spec, pid int) (s Sockets) {
	if pid <= 0 {
		return Sockets{Elsewhere: true}
	}
	for _, m := range spec.Mounts {
		source, err := hostpath.Disk{}.Canonical(m.Source)
		if err != nil {
			s.Partly = append(s.Partly, m.Target)
			continue
		}
		found, complete := hostpath.Disk{}.SocketsBelow(source)
		for _, socket := range found {
			s.Found = append(s.Found, path.Join(m.Target, strings.TrimPrefix(socket, source)))
		}
		if !m.ReadOnly {
			uid, gid := spec.UserNumbers()
			programs, _ := hostpath.Disk{}.SetIDBelow(source, uid, gid)
			for _, program := range programs {
				s.SetID = append(s.SetID, path.Join(m.Target, strings.TrimPrefix(program, source)))
			}
		}
		if !complete {
			s.Partly = append(s.Partly, m.Target)
		}
	}
	return s
}

// checkSetID looks for programs that lend their owner's rights and that code
// inside could change.
func checkSetID(ring string, e *Evidence) Check {
	const name, promised = "set-user-ID programs of the host", "none that can be changed"
	if e.Below.Elsewhere {
		return note(ring, name, promised, "not looked for: the mounts are not on this machine")
	}
	return compare(ring, name, len(e.Below.SetID) == 0, promised, listed(e.Below.SetID))
}

func checkSockets(ring string, e *Evidence) Check {
	const name, promised = "sockets of the host below mounts", "none"
	switch s := e.Below; {
	case len(s.Found) > 0:
		return compare(ring, name, false, promised, listed(s.Found))
	case s.Elsewhere:
		return note(ring, name, promised, "not looked for: the mounts are not on this machine")
	case len(s.Partly) > 0:
		return note(ring, name, promised, fmt.Sprintf("none known; not every file was looked at in %s", listed(s.Partly)))
	}
	return compare(ring, name, true, promised, "none")
}
