package plan

import (
	"bufio"
	"cmp"
	"fmt"
	"os"

	"github.com/atoll-run/atoll/internal/sandbox"
)

// What a sandbox may use unless the configuration says otherwise: half of the
// machine's memory, and as many processes and threads as a large build has.
const (
	DefaultPids        = 1024
	defaultMemoryShare = 2
)

// defaultsOf returns the limits that this machine gives a sandbox for which none
// were configured; memory is that of the caller, if it is not 0. Memory
// together with swap may be configured alone, and then says enough of memory.
func defaultsOf(asked sandbox.Limits, memory int64) sandbox.Defaults {
	var d sandbox.Defaults
	if asked.Pids == 0 {
		d.Pids = DefaultPids
	}
	if asked.Memory == 0 && asked.MemorySwap == 0 {
		d.Memory = cmp.Or(memory, machineMemory()/defaultMemoryShare)
	}
	return d
}

// machineMemory is how many bytes of memory there are; 0 if the kernel does not
// say.
func machineMemory() int64 {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var kibibytes int64
		if _, err := fmt.Sscanf(lines.Text(), "MemTotal: %d kB", &kibibytes); err == nil {
			return kibibytes << 10
		}
	}
	return 0
}
