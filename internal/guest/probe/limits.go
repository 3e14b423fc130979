package probe

import (
	"math"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/wire/findings"
)

const noLimit = -1

// limits returns the limits of the control group and of processes.
func limits() findings.Limits {
	l := findings.Limits{
		Pids:    number("/sys/fs/cgroup/pids.max", "/sys/fs/cgroup/pids/pids.max"),
		Memory:  number("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"),
		Swap:    swap(),
		Sockets: number("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.kmem.tcp.limit_in_bytes"),
		CPUs:    cpus(), Disks: disks(), Resource: map[string]findings.Ulimit{},
	}
	for name, resource := range resources {
		var limit unix.Rlimit
		if unix.Getrlimit(resource, &limit) == nil {
			l.Resource[name] = findings.Ulimit{Soft: signed(limit.Cur), Hard: signed(limit.Max)}
		}
	}
	return l
}

// resources are the limits of processes, by the names that configurations use.
var resources = map[string]int{
	"core": unix.RLIMIT_CORE, "cpu": unix.RLIMIT_CPU, "data": unix.RLIMIT_DATA, "fsize": unix.RLIMIT_FSIZE, "locks": unix.RLIMIT_LOCKS,
	"memlock": unix.RLIMIT_MEMLOCK, "msgqueue": unix.RLIMIT_MSGQUEUE, "nice": unix.RLIMIT_NICE, "nofile": unix.RLIMIT_NOFILE,
	"nproc": unix.RLIMIT_NPROC, "rss": unix.RLIMIT_RSS, "rtprio": unix.RLIMIT_RTPRIO, "rttime": unix.RLIMIT_RTTIME,
	"sigpending": unix.RLIMIT_SIGPENDING, "stack": unix.RLIMIT_STACK,
}

func signed(limit uint64) int64 {
	if limit > math.MaxInt64 {
		return noLimit
	}
	return int64(limit)
}

// number reads the first of the files that exists; 0 if none does.
func number(paths ...string) int64 {
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		value, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err != nil || value >= math.MaxInt64/2 { // version 1 writes no limit as a huge number
			return noLimit
		}
		return value
	}
	return 0
}

// swap returns the limit of memory and swap together. Version 2 has one of swap alone.
func swap() int64 {
	memory, alone := number("/sys/fs/cgroup/memory.max"), number("/sys/fs/cgroup/memory.swap.max")
	switch _, err := os.Stat("/sys/fs/cgroup/memory.swap.max"); {
	case err != nil:
		return number("/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes")
	case memory <= 0 || alone < 0:
		return noLimit
	}
	return memory + alone
}

// cpus returns the quota divided by the period.
func cpus() float64 {
	quota, period := number("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"), number("/sys/fs/cgroup/cpu/cpu.cfs_period_us")
	if text, err := os.ReadFile("/sys/fs/cgroup/cpu.max"); err == nil {
		first, second, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
		period, _ = strconv.ParseInt(second, 10, 64)
		if quota, err = strconv.ParseInt(first, 10, 64); err != nil {
			quota = noLimit
		}
	}
	switch {
	case quota == 0 || period <= 0:
		return 0
	case quota < 0:
		return noLimit
	}
	return float64(quota) / float64(period)
}
