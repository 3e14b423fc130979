package verify

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/wire/findings"
)

// OutsideLimits are the limits of a process as the host's kernel has them, the
// lowest of its groups and those above. Nothing inside can change what is read
// here. What cannot be read is 0.
func OutsideLimits(pid int) findings.Limits {
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
	l := findings.Limits{
		Pids:   g.lowest("pids", "pids.max", "pids.max"),
		Memory: g.lowest("memory", "memory.limit_in_bytes", "memory.max"),
	}
	if quota := g.lowest("cpu", "cpu.cfs_quota_us", "cpu.max"); quota > 0 {
		l.CPUs = float64(quota) / period
	}
	return l
}

// period is what a processor quota is a part of. Runtimes do not change it.
const period = 100_000

// lowest is the smallest limit on the way up; 0 if there is none to be seen.
func (g groups) lowest(controller, v1, v2 string) int64 {
	base, group, file := filepath.Join(g.root, controller), g.of[controller], v1
	if group == "" {
		base, group, file = g.root, g.of[""], v2
	}
	var low int64
	for ; group != "" && group != "/" && group != "."; group = filepath.Dir(group) {
		if n := readLimit(filepath.Join(base, group, file)); n > 0 && (low == 0 || n < low) {
			low = n
		}
	}
	return low
}

// readLimit is the first number of a file; 0 where it names no limit.
func readLimit(path string) int64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	n, err := strconv.ParseInt(first, 10, 64)
	if err != nil || n < 0 || n >= math.MaxInt64/2 {
		return 0
	}
	return n
}
