package linux

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/runtime/cgroups"
	"github.com/atoll-run/atoll/internal/sandbox"
)

var _ sandbox.Measurer = (*Instance)(nil)

const (
	// maxCounted bounds how many processes are looked at: one may start others faster
	// than they are counted.
	maxCounted = 1 << 16
	// ticksPerSecond is what CPU time is counted in by /proc.
	ticksPerSecond = 100
)

// Usage returns what the processes of the sandbox use, as its control group counts it.
// What no group counts is added up of its processes.
func (i *Instance) Usage(context.Context) (sandbox.Usage, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.record.Run.alive() {
		if err := i.reload(); err != nil {
			return sandbox.Usage{}, err
		}
		if !i.record.Run.alive() {
			return sandbox.Usage{}, fmt.Errorf("sandbox %q: usage: %w", i.name, sandbox.ErrNotRunning)
		}
	}
	group := i.countingGroup()
	if group == nil {
		return measureAll(processesBelow(i.record.Run.PID)), nil
	}
	return usageOf(group), nil
}

// countingGroup returns the control group of the sandbox, nil if it has none. The caller
// holds the lock.
func (i *Instance) countingGroup() *cgroups.Group {
	if i.record.Groupless || i.group != nil {
		return i.group
	}
	host, err := i.runtime.groups()
	if err != nil {
		return nil
	}
	if group := host.Existing(i.record.Summary.ID); len(group.Dirs) > 0 {
		i.group = group
	}
	return i.group
}

// usageOf returns what a group counts, and what it does not count of its processes.
func usageOf(group *cgroups.Group) (u sandbox.Usage) {
	cpu, countsCPU := group.CPUUsed()
	memory, countsMemory := group.MemoryUsed()
	tasks, countsTasks := group.Tasks()
	if !countsCPU || !countsMemory || !countsTasks {
		u = measureAll(group.Processes(maxCounted))
	}
	if countsCPU {
		u.CPU = cpu
	}
	if countsMemory {
		u.Memory = memory
	}
	if countsTasks {
		u.Pids = tasks
	}
	return u
}

// measureAll adds up what processes use.
func measureAll(pids []int) (u sandbox.Usage) {
	for _, pid := range pids {
		if p, ok := measure(pid); ok {
			u.CPU, u.Memory, u.Pids = u.CPU+p.CPU, u.Memory+p.Memory, u.Pids+p.Pids
		}
	}
	return u
}

// processesBelow are a process and all that come from it.
func processesBelow(pid int) []int {
	all := []int{pid}
	for n := 0; n < len(all) && len(all) < maxCounted; n++ {
		threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", all[n])) // it may have ended
		for _, thread := range threads {
			text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", all[n], thread.Name()))
			for child := range strings.FieldsSeq(string(text)) {
				if number, err := strconv.Atoi(child); err == nil {
					all = append(all, number)
				}
			}
		}
	}
	return all
}

// measure reads what a process, and those that it has waited for, used; false if it has
// ended. Its name, which it chooses, is skipped: the fields begin after the last ).
func measure(pid int) (u sandbox.Usage, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	at := bytes.LastIndexByte(text, ')')
	if err != nil || at < 0 {
		return u, false
	}
	fields := strings.Fields(string(text[at+1:])) // from the state on, which is field 3
	const utime, stime, cutime, cstime, threads, rss = 11, 12, 13, 14, 17, 21
	if len(fields) <= rss {
		return u, false
	}
	number := func(n int) uint64 { v, _ := strconv.ParseUint(fields[n], 10, 64); return v }
	ticks := number(utime) + number(stime) + number(cutime) + number(cstime)
	return sandbox.Usage{CPU: ticks * uint64(time.Second/ticksPerSecond), Memory: number(rss) * uint64(os.Getpagesize()), Pids: number(threads)}, true
}
