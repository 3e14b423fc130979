package verify

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/runtime/cgroups"
	"github.com/atoll-run/atoll/internal/wire/findings"
)

// outsideLimits are the limits of a process as the host's kernel has them, the
// lowest of its groups and those above. Nothing inside can change what is read
// here. What cannot be read is 0, and -1 that there is no limit.
func outsideLimits(pid int) findings.Limits {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return findings.Limits{}
	}
	return parseGroups("/sys/fs/cgroup", string(text)).limits()
}

// groups are a process's groups, by controller; "" is that of version 2.
type groups struct {
	root string
	of   map[string]string
}

func parseGroups(root, text string) groups {
	g := groups{root, map[string]string{}}
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for controller := range strings.SplitSeq(parts[1], ",") {
			g.of[controller] = parts[2]
		}
	}
	return g
}

func (g groups) limits() findings.Limits {
	return findings.Limits{
		Pids:    int64(g.lowest("pids", plain("pids.max"), plain("pids.max"))),
		Memory:  int64(g.lowest("memory", plain("memory.limit_in_bytes"), plain("memory.max"))),
		Swap:    int64(g.lowest("memory", plain("memory.memsw.limit_in_bytes"), swapOf2)),
		CPUs:    g.lowest("cpu", quotaOf1, quotaOf2),
		Sockets: int64(g.lowest("memory", plain(cgroups.SocketsFile), plain("memory.max"))),
	}
}

// reader reads a limit in a group's directory.
type reader func(dir string) float64

const noLimit = -1

// lowest is the smallest limit on the way up.
func (g groups) lowest(controller string, v1, v2 reader) float64 {
	base, group, read := filepath.Join(g.root, controller), g.of[controller], v1
	if group == "" {
		base, group, read = g.root, g.of[""], v2
	}
	var low float64
	for ; group != "" && group != "/" && group != "."; group = filepath.Dir(group) {
		n := read(filepath.Join(base, group))
		if low == 0 || n > 0 && (low == noLimit || n < low) {
			low = n
		}
	}
	return low
}

// plain reads a file that holds a number, or the word for none.
func plain(file string) reader {
	return func(dir string) float64 { return numbers(filepath.Join(dir, file))[0] }
}

// swapOf2 joins what version 2 counts apart.
func swapOf2(dir string) float64 {
	memory, swap := plain("memory.max")(dir), plain("memory.swap.max")(dir)
	switch {
	case memory == 0:
		return 0
	case memory < 0 || swap < 0:
		return noLimit
	}
	return memory + swap
}

func quotaOf1(dir string) float64 {
	return quota(plain("cpu.cfs_quota_us")(dir), plain("cpu.cfs_period_us")(dir))
}

func quotaOf2(dir string) float64 {
	both := numbers(filepath.Join(dir, "cpu.max"))
	return quota(both[0], both[1])
}

func quota(part, period float64) float64 {
	if part <= 0 || period <= 0 {
		return min(part, 0)
	}
	return part / period
}

// numbers are the first two of a file: -1 where it says that there is no limit,
// 0 where it cannot be read.
func numbers(path string) (found [2]float64) {
	text, err := os.ReadFile(path)
	if err != nil {
		return found
	}
	for i, word := range strings.Fields(string(text)) {
		if i == len(found) {
			break
		}
		n, err := strconv.ParseInt(word, 10, 64)
		if found[i] = float64(n); err != nil || n < 0 || n >= math.MaxInt64/2 {
			found[i] = noLimit
		}
	}
	return found
}
