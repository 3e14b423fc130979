package guest

import (
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/proc"
)

// maxSocketLink is longer than any link to a socket in /proc/PID/fd.
const maxSocketLink = 40

// maxScannedFDs bounds the descriptors that are examined to find the process at the
// other end of a connection. Beyond that the caller is unknown.
const maxScannedFDs = 1 << 16

// ofSockets returns the id of the open grant that the process that holds one of the
// sockets was started under, and the mark of its exec; "" and 0 if they are not known.
// If several processes hold one, all must have been started under the same grant: one
// that was not may have sent the descriptor to one that was. (A process that is not
// dumpable does not show its descriptors, and so has no grant. It cannot hold an end
// secretly beside a process of a grant unless that process received it, and a process
// that receives descriptors could as well pass on bytes.)
func (gs *grants) ofSockets(sockets []string) (id string, exec proc.Mark) {
	if len(sockets) == 0 || gs.none() {
		return "", 0
	}
	owned, left := false, maxScannedFDs
	gs.walker.Procs.Each(func(pid int) {
		holds, lowest, highest := gs.holder(pid, sockets, &left)
		if !holds {
			return
		}
		its, mark := "", lowest
		if lowest == highest { // a process that lowered its limits has no grant
			its = gs.byMark(lowest)
		}
		if owned && its != id {
			its = ""
		}
		if its == "" || owned && mark != exec {
			mark = 0
		}
		id, exec, owned = its, mark, true
	})
	if left <= 0 {
		return "", 0
	}
	return id, exec
}

// holder reports whether pid holds one of the sockets, and which execs it may belong to. The
// marks are read between opening the process's directory and reading from it: reading
// fails once the process is gone, so they are not those of a new process with its pid.
func (gs *grants) holder(pid int, sockets []string, left *int) (holds bool, lowest, highest proc.Mark) {
	dir, err := os.Open("/proc/" + strconv.Itoa(pid) + "/fd")
	if err != nil {
		return false, 0, 0
	}
	defer dir.Close()
	lowest, highest, ok := gs.lineage.MarksOf(pid)
	if !ok {
		return false, 0, 0
	}
	link := make([]byte, maxSocketLink)
	for *left > 0 {
		names, err := dir.Readdirnames(64)
		*left -= len(names)
		for _, name := range names {
			n, err := unix.Readlinkat(int(dir.Fd()), name, link)
			if err == nil && slices.Contains(sockets, string(link[:n])) {
				return true, lowest, highest
			}
		}
		if err != nil {
			break
		}
	}
	return false, 0, 0
}
