package escapetest

import (
	"os"

	"github.com/atoll-run/atoll/internal/sandbox"
)

// The buffers that are asked for, in MiB, and the memory of the sandbox.
const (
	someBuffers  = "4"
	largeBuffers = "400"
	besideMiB    = 128
)

// socketBuffers keeps data that no program reads in the buffers of sockets, which
// the kernel holds in memory.
func socketBuffers(a *arena) {
	if !a.Limits && !a.Copies {
		return // asking for a limit of memory is refused there: see runBombs
	}
	for _, kind := range []string{"tcp", "udp"} {
		c := a.startBeside()
		if out, result := c.attack("sockets", kind, someBuffers); result.ExitCode != 1 {
			a.t.Errorf("not even a few MiB can be held (%d)\n%s", result.ExitCode, out)
		}
		if (a.Engine || a.Copies) && !unifiedMemory() {
			continue // engines, those of nodes too, have no such limit with version 1: doctor and security.md say so
		}
		c.mustStop(bomb{name: "sockets", large: []string{"sockets", kind, largeBuffers}, ends: true})
		c.alive()
	}
}

func beside(s *sandbox.Spec) {
	s.Limits.Memory, s.Limits.MemorySwap = besideMiB<<20, besideMiB<<20
}

// startBeside returns a sandbox with little memory. A home has as much.
func (a *arena) startBeside() *cell {
	a.t.Helper()
	if a.home != nil {
		return a.start()
	}
	return a.start(beside)
}

// unifiedMemory reports whether control groups of version 2 count memory here.
func unifiedMemory() bool {
	_, err := os.Stat("/sys/fs/cgroup/memory/memory.limit_in_bytes")
	return err != nil
}
