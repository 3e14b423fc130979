package verify

import "github.com/atoll-run/atoll/internal/runtime/cgroups"

// checkSocketBuffers says how the buffers of sockets are limited in a sandbox
// whose memory is. That they are not is a note: an engine cannot be asked for it.
func checkSocketBuffers(memory, sockets int64) []Check {
	const name = "socket buffers"
	if memory <= 0 || sockets == 0 {
		return nil // without a limit of memory, or not to be seen
	}
	found := amount(inBytes, float64(sockets))
	if sockets < 0 || sockets > memory {
		return []Check{note(limitRing, name, "not counted as memory", found)}
	}
	return []Check{compare(limitRing, name, true, "no more than memory", found)}
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
