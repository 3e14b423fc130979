package cgroups

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// MemoryUsed returns the bytes of memory that the processes of the group use, caches that
// can be dropped left out; false if no hierarchy counts them.
func (g *Group) MemoryUsed() (used uint64, ok bool) {
	for _, dir := range g.dirsOf("memory") {
		file := "memory.usage_in_bytes"
		if dir.Controller == "" {
			file = "memory.current"
		}
		if n, err := strconv.ParseUint(readLine(filepath.Join(dir.Path, file)), 10, 64); err == nil {
			return n - min(n, inactiveFile(dir.Path)), true
		}
	}
	return 0, false
}

// CPUUsed returns for how many nanoseconds processors worked for the group; false if no
// hierarchy counts them.
func (g *Group) CPUUsed() (used uint64, ok bool) {
	for _, dir := range g.dirsOf("cpuacct", "cpu") {
		if dir.Controller != "" {
			if n, err := strconv.ParseUint(readLine(filepath.Join(dir.Path, "cpuacct.usage")), 10, 64); err == nil {
				return n, true
			}
			continue
		}
		first, _, _ := strings.Cut(readLine(filepath.Join(dir.Path, "cpu.stat")), "\n")
		if micros, is := strings.CutPrefix(first, "usage_usec "); is {
			n, err := strconv.ParseUint(micros, 10, 64)
			return n * 1000, err == nil
		}
	}
	return 0, false
}

// Tasks returns how many threads the group has; false if no hierarchy counts them.
func (g *Group) Tasks() (n uint64, ok bool) {
	for _, dir := range g.dirsOf("pids") {
		if n, err := strconv.ParseUint(readLine(filepath.Join(dir.Path, "pids.current")), 10, 64); err == nil {
			return n, true
		}
	}
	return 0, false
}

// dirsOf returns the directories that have files of some controllers: theirs of version 1,
// and that of version 2. Others are not looked into, for what runs is measured often.
func (g *Group) dirsOf(controllers ...string) (dirs []Dir) {
	for _, dir := range g.Dirs {
		if dir.Controller == "" || slices.Contains(controllers, dir.Controller) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// Processes returns the ids of the group's processes, at most so many.
func (g *Group) Processes(most int) (pids []int) {
	if len(g.Dirs) == 0 {
		return nil
	}
	for pid := range strings.FieldsSeq(readLine(filepath.Join(g.Dirs[0].Path, "cgroup.procs"))) {
		if n, err := strconv.Atoi(pid); err == nil && len(pids) < most {
			pids = append(pids, n)
		}
	}
	return pids
}

// inactiveFile is the cache that the kernel can drop: of version 1, then of version 2.
func inactiveFile(dir string) uint64 {
	text, err := os.ReadFile(filepath.Join(dir, "memory.stat"))
	if err != nil {
		return 0
	}
	var used uint64
	for line := range strings.Lines(string(text)) {
		name, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "inactive_file" || name == "total_inactive_file" { // with version 1 the second, which comes later, counts groups below too
			used, _ = strconv.ParseUint(number, 10, 64)
		}
	}
	return used
}
