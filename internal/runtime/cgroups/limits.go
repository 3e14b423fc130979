package cgroups

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// Limits are what a group may use together. Zero is no limit.
type Limits struct {
	Pids   int64
	Memory int64 // bytes
	// MemorySwap is memory and swap together, in bytes; -1 is unlimited swap,
	// 0 as much swap as memory.
	MemorySwap int64
	CPUs       float64
	IO         IO
}

// None reports whether nothing is limited.
func (l Limits) None() bool {
	return l.Pids == 0 && l.Memory == 0 && l.MemorySwap == 0 && l.CPUs == 0 && l.IO.none()
}

// Limit is one of Limits.
type Limit string

// The limits, by what a person calls them.
const (
	Pids    Limit = "processes"
	Memory  Limit = "memory"
	Swap    Limit = "swap"
	CPU     Limit = "CPU time"
	Rate    Limit = "reading and writing"
	Weight  Limit = "the share of a disk"
	Sockets Limit = "socket buffers"
)

// Missing is a limit that cannot be set here.
type Missing struct {
	Limit Limit
	Err   error
	// Delegate says that the machine can do it, but not for this user.
	Delegate bool
}

// cpuPeriod is what shares of CPU time are counted in, in microseconds.
const cpuPeriod = 100_000

// setting is one file to write.
type setting struct {
	limit      Limit
	controller string
	file       string
	value      string
}

// settings are what to write for l. Order matters: memory before swap.
func (h *Host) settings(l Limits) []setting {
	var list []setting
	if l.Pids > 0 {
		list = append(list, setting{Pids, "pids", "pids.max", strconv.FormatInt(l.Pids, 10)})
	}
	if l.Memory > 0 {
		list = append(list, h.memory(l)...)
	}
	if l.CPUs > 0 {
		quota := strconv.FormatInt(max(int64(l.CPUs*cpuPeriod), 1000), 10)
		if h.unified("cpu") {
			list = append(list, setting{CPU, "cpu", "cpu.max", quota + " " + strconv.Itoa(cpuPeriod)})
		} else {
			list = append(list, setting{CPU, "cpu", "cpu.cfs_period_us", strconv.Itoa(cpuPeriod)}, setting{CPU, "cpu", "cpu.cfs_quota_us", quota})
		}
	}
	return append(list, h.io(l.IO)...)
}

func (h *Host) memory(l Limits) []setting {
	total := l.MemorySwap
	if total == 0 {
		total = 2 * l.Memory
	}
	memory, swap := strconv.FormatInt(l.Memory, 10), strconv.FormatInt(total-l.Memory, 10)
	if total == -1 {
		swap = "max"
	}
	if h.unified("memory") {
		return []setting{{Memory, "memory", "memory.max", memory}, {Swap, "memory", "memory.swap.max", swap}}
	}
	return []setting{
		{Memory, "memory", "memory.limit_in_bytes", memory}, {Swap, "memory", "memory.memsw.limit_in_bytes", strconv.FormatInt(total, 10)},
		{Sockets, "memory", SocketsFile, strconv.FormatInt(SocketShare(l.Memory), 10)},
	}
}

// SocketsFile limits the buffers of TCP and UDP sockets with version 1, which
// does not count them as memory. Version 2 does, and has no such file.
const SocketsFile = "memory.kmem.tcp.limit_in_bytes"

// SocketShare returns how many bytes the buffers of sockets may take with version
// 1, beside so much memory: a quarter of it.
func SocketShare(memory int64) int64 { return memory / 4 }

func (h *Host) unified(controller string) bool {
	tree := h.controllers[controller]
	return tree != nil && tree.unified
}

var errNoController = errors.New("the kernel has no such controller switched on")

// Missing returns which limits could not be set. It makes the directories that
// groups are made in, and no group.
func (h *Host) Missing(l Limits) []Missing {
	var missing []Missing
	told := map[Limit]bool{}
	for _, s := range h.settings(l) {
		err := h.possible(s, l)
		if err == nil || told[s.limit] || s.limit == Sockets { // not every kernel has that one
			continue
		}
		told[s.limit] = true
		missing = append(missing, Missing{s.limit, err, errors.Is(err, errNotDelegated) || errors.Is(err, os.ErrPermission)})
	}
	return missing
}

func (h *Host) possible(s setting, l Limits) error {
	tree := h.controllers[s.controller]
	if tree == nil {
		return errNoController
	}
	parent, err := tree.enable(s.controller)
	if err != nil {
		return err
	}
	if s.limit == Weight {
		return h.Weighs(l.IO.Disks)
	}
	if s.limit != Swap {
		return nil
	}
	// Kernels can be built, and booted, without accounting for swap. That is a gap
	// only if a limit of swap is configured and there is swap.
	if _, err := os.Stat(filepath.Join(parent, s.file)); err != nil && l.MemorySwap > 0 && hasSwap() {
		return fmt.Errorf("the kernel does not count swap: %w", errNoController)
	}
	return nil
}

// hasSwap reports whether there is any: /proc/swaps has a line of headings.
func hasSwap() bool {
	text, err := os.ReadFile("/proc/swaps")
	if err != nil {
		return true
	}
	lines := 0
	for _, b := range text {
		if b == '\n' {
			lines++
		}
	}
	return lines > 1
}
