package cgroups

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// MemoryUsed returns the bytes of memory that the processes of the group use, caches that
// can be dropped left out; false if no hierarchy counts them.
func (g *Group) MemoryUsed() (used uint64, ok bool) {
	for _, dir := range g.Dirs {
		for _, file := range []string{"memory.current", "memory.usage_in_bytes"} {
			n, err := strconv.ParseUint(readLine(filepath.Join(dir.Path, file)), 10, 64)
			if err == nil {
				return n - min(n, inactiveFile(dir.Path)), true
			}
		}
	}
	return 0, false
}

// inactiveFile is the cache that the kernel can drop: of version 1, then of version 2.
func inactiveFile(dir string) uint64 {
	text, err := os.ReadFile(filepath.Join(dir, "memory.stat"))
	if err != nil {
		return 0
	}
	found := map[string]uint64{}
	for line := range strings.Lines(string(text)) {
		name, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseUint(number, 10, 64); err == nil {
			found[name] = n
		}
	}
	if n, ok := found["total_inactive_file"]; ok {
		return n
	}
	return found["inactive_file"]
}
