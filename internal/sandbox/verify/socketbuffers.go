package verify

import (
	"github.com/atoll-run/atoll/internal/runtime/cgroups"
	"github.com/atoll-run/atoll/internal/wire/findings"
)

// checkSocketBuffers says how the buffers of sockets are limited in a sandbox
// whose memory is. That they are not is a note: an engine cannot be asked for it.
func checkSocketBuffers(seen *findings.Limits) []Check {
	const name = "socket buffers"
	if seen.Memory <= 0 || seen.Sockets == 0 {
		return nil // without a limit of memory, or not to be seen
	}
	holds := seen.Sockets > 0 && seen.Sockets <= seen.Memory
	if !holds {
		return []Check{note(limitRing, name, "not counted as memory", amount(inBytes, float64(seen.Sockets)))}
	}
	return []Check{compare(limitRing, name, true, "no more than memory", amount(inBytes, float64(seen.Sockets)))}
}

// socketBuffers says whether the buffers of sockets count as memory.
func (h host) socketBuffers() Check {
	const first = "/sys/fs/cgroup/memory/" // of version 1
	return trait{"limits", "socket buffers",
		"buffers of sockets count as memory",
		yesNo(h.has(first+cgroups.SocketsFile), "buffers of sockets do not count as memory: the Linux runtime limits them apart, engines do not",
			"buffers of sockets do not count as memory, and cannot be limited"),
		"boot with systemd.unified_cgroup_hierarchy=1 to have control groups of version 2"}.wanted(!h.has(first + "memory.limit_in_bytes"))
}
