package proc

import (
	"bytes"
	"maps"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// pidsEvents are the files in which the kernel counts the forks that the limit of
// processes refused: control groups version 2 and 1.
var pidsEvents = []string{"/sys/fs/cgroup/pids.events", "/sys/fs/cgroup/pids/pids.events"}

// PidsWatch detects that the limit of processes was reached, and kills the processes
// that ended commands have left: otherwise no command could be started any more.
type PidsWatch struct {
	events int // descriptor of pidsEvents; -1 if there is no limit
	reaper *Reaper
	walker *Walker
}

// NewPidsWatch opens the kernel's count, if there is one.
func NewPidsWatch(r *Reaper, w *Walker) *PidsWatch {
	c := &PidsWatch{events: -1, reaper: r, walker: w}
	for _, name := range pidsEvents {
		if fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
			c.events = fd
			break
		}
	}
	return c
}

// Refused returns how many forks the limit has refused so far.
func (c *PidsWatch) Refused() int64 {
	if c == nil || c.events < 0 {
		return 0
	}
	var buf [128]byte
	n, err := unix.Pread(c.events, buf[:], 0)
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(buf[:n]) {
		if value, ok := bytes.CutPrefix(line, []byte("max ")); ok {
			count, _ := strconv.ParseInt(string(bytes.TrimSpace(value)), 10, 64)
			return count
		}
	}
	return 0
}

// KillLeftovers kills every process that does not descend from a running command, and
// reports whether there was one. No command begins meanwhile.
func (c *PidsWatch) KillLeftovers() bool {
	if !c.walker.alone {
		return false
	}
	c.reaper.forks.Lock()
	defer c.reaper.forks.Unlock()
	left := c.reaper.endedExecs()
	found := false
	for range killPasses {
		if c.walker.visit(left, nil) == 0 {
			break
		}
		found = true
		c.walker.killStopped(left)
	}
	return found
}

// killPasses bounds the passes of KillLeftovers.
const killPasses = 10

// endedExecs returns the execs whose first process has ended. The caller holds forks.
func (r *Reaper) endedExecs() (ended ExecSet) {
	r.mu.Lock()
	defer r.mu.Unlock()
	running := map[Mark]bool{}
	for _, a := range r.waiting {
		running[a.mark] = true
	}
	next := Mark(1)
	for _, m := range slices.Sorted(maps.Keys(running)) {
		if m > next {
			ended = append(ended, MarkRange{next, m - 1})
		}
		next = m + 1
	}
	return append(ended, MarkRange{next, marks})
}
