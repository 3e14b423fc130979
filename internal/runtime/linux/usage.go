package linux

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

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

// Usage returns what the processes of the sandbox use. Memory is what its control group
// counts, or, where it has none, what is resident of each process.
func (i *Instance) Usage(context.Context) (sandbox.Usage, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if err := i.reload(); err != nil {
		return sandbox.Usage{}, err
	}
	if !i.record.Run.alive() {
		return sandbox.Usage{}, fmt.Errorf("sandbox %q: usage: %w", i.name, sandbox.ErrNotRunning)
	}
	var u sandbox.Usage
	for _, pid := range processesBelow(i.record.Run.PID) {
		if p, ok := measure(pid); ok {
			u.CPU, u.Memory, u.Pids = u.CPU+p.CPU, u.Memory+p.Memory, u.Pids+p.Pids
		}
	}
	if i.record.Groupless {
		return u, nil
	}
	if host, err := i.runtime.groups(); err == nil {
		if used, ok := host.Existing(i.record.Summary.ID).MemoryUsed(); ok {
			u.Memory = used
		}
	}
	return u, nil
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
