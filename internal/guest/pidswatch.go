package guest

import (
	"bytes"
	"maps"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// pidsEvents are where the kernel counts the forks that the limit of processes
// refused: control groups version 2 and 1.
var pidsEvents = []string{"/sys/fs/cgroup/pids.events", "/sys/fs/cgroup/pids/pids.events"}

// pidsWatch notices that the sandbox ran out of processes, and ends what commands left
// behind: otherwise nothing could be started any more.
type pidsWatch struct {
	events int // descriptor of pidsEvents; -1 if there is no limit
	reaper *reaper
	walker *treeWalker
}

func newPidsWatch(r *reaper, w *treeWalker) *pidsWatch {
	c := &pidsWatch{events: -1, reaper: r, walker: w}
	for _, name := range pidsEvents {
		if fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
			c.events = fd
			break
		}
	}
	return c
}

// refused returns how many forks the limit has refused so far.
func (c *pidsWatch) refused() int64 {
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

// killLeftovers kills every process that no running command started, and reports
// whether there was one. No command begins meanwhile.
func (c *pidsWatch) killLeftovers() bool {
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

// killPasses bounds how often processes are looked for that were killed.
const killPasses = 10

// endedExecs returns the execs whose first process does not run any more. Forks is held.
func (r *reaper) endedExecs() (ended execSet) {
	r.mu.Lock()
	defer r.mu.Unlock()
	running := map[mark]bool{}
	for _, a := range r.waiting {
		running[a.mark] = true
	}
	next := mark(1)
	for _, m := range slices.Sorted(maps.Keys(running)) {
		if m > next {
			ended = append(ended, block{next, m - 1})
		}
		next = m + 1
	}
	return append(ended, block{next, marks})
}
