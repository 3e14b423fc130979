package verify

import (
	"cmp"
	"fmt"
	"math"

	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/wire/findings"
)

// pidsReserve is what runtimes may add to the limit of processes for the guest.
const pidsReserve = 64

const limitRing = "limits"

// limit is one number that was asked for, and what was found.
type limit struct {
	name         string
	spell        formatter
	asked, found float64
}

// check says that nothing was asked for, if so.
func (l limit) check(holds bool) Check {
	if l.asked == 0 {
		return note(limitRing, l.name, "no limit asked", amount(l.spell, l.found))
	}
	return compare(limitRing, l.name, holds, amount(l.spell, l.asked), amount(l.spell, l.found))
}

// checkMost takes what was found for enough if there is no more of it.
func (l limit) checkMost() Check { return l.check(l.found > 0 && l.found <= l.asked) }

func checkLimits(e *Evidence) []Check {
	asked, inside, seen := e.Spec.Limits, e.Inside.Limits, e.Outside.Limits
	pids, cpus := float64(cmp.Or(seen.Pids, inside.Pids)), cmp.Or(seen.CPUs, inside.CPUs)
	memory := float64(cmp.Or(seen.Memory, inside.Memory))
	asked = asked.WithDefaults(inForce(asked.Defaults, pids, memory))
	checks := []Check{
		limit{"processes", withReserve(asked.Pids), float64(asked.Pids), pids}.check(pids > 0 && pids <= float64(asked.Pids+pidsReserve)),
		limit{"memory", inBytes, float64(asked.Memory), memory}.checkMost(),
		limit{"processors", plainNumber, asked.CPUs, cpus}.check(cpus > 0 && math.Abs(cpus-asked.CPUs) < 0.01),
	}
	if asked.MemorySwap > 0 {
		checks = append(checks, limit{"memory and swap", inBytes, float64(asked.MemorySwap), float64(cmp.Or(seen.Swap, inside.Swap))}.checkMost())
	}
	checks = append(checks, checkSocketBuffers(int64(memory), cmp.Or(seen.Sockets, inside.Sockets))...)
	checks = append(checks, checkDisks(e)...)
	for _, u := range asked.Ulimits {
		checks = append(checks, checkUlimit(u, inside.Resource))
	}
	return checks
}

// inForce returns the defaults that can be seen. What is not is no gap: not every
// user can have control groups, and nobody asked for the limit.
func inForce(d sandbox.Defaults, pids, memory float64) sandbox.Defaults {
	if pids <= 0 || pids > float64(d.Pids+pidsReserve) {
		d.Pids = 0
	}
	if memory <= 0 || memory > float64(d.Memory) {
		d.Memory = 0
	}
	return d
}

// checkDisks says nothing of what was not asked for: most sandboxes have none of
// these limits.
func checkDisks(e *Evidence) []Check {
	asked, inside, storage := e.Spec.Limits.IO, e.Inside.Limits.Disks, e.Spec.Limits.Storage
	if e.Spec.ReadOnlyRoot {
		storage = sandbox.Storage{}
	}
	var checks []Check
	for _, l := range []limit{
		{"read a second", inBytes, float64(asked.ReadBps), float64(inside.ReadBps)},
		{"written a second", inBytes, float64(asked.WriteBps), float64(inside.WriteBps)},
		{"reads a second", plainNumber, float64(asked.ReadIOps), float64(inside.ReadIOps)},
		{"writes a second", plainNumber, float64(asked.WriteIOps), float64(inside.WriteIOps)},
		{"size of the root", inBytes, float64(storage.Size), float64(inside.Root)},
		{"files of the root", plainNumber, float64(storage.Inodes), float64(inside.Inodes)},
	} {
		if l.asked > 0 {
			checks = append(checks, l.checkMost())
		}
	}
	return checks
}

func amount(spell formatter, n float64) string {
	switch {
	case n < 0:
		return "no limit"
	case n == 0:
		return "none to be seen"
	}
	return spell(n)
}

// formatter writes a number for people.
type formatter func(float64) string

func plainNumber(n float64) string { return fmt.Sprintf("%.12g", n) }

// withReserve says why there are more processes than were asked for.
func withReserve(asked int64) formatter {
	return func(n float64) string {
		if asked > 0 && n > float64(asked) && n <= float64(asked+pidsReserve) {
			return fmt.Sprintf("%d, and %d for the guest", asked, int64(n)-asked)
		}
		return plainNumber(n)
	}
}

// inBytes uses the largest unit that the number is a multiple of.
func inBytes(n float64) string {
	const step = 1024
	unit, units := "bytes", []string{"KiB", "MiB", "GiB", "TiB"}
	for i := 0; i < len(units) && n >= step && math.Mod(n, step) == 0; i++ {
		n, unit = n/step, units[i]
	}
	return plainNumber(n) + " " + unit
}

func checkUlimit(asked sandbox.Ulimit, found map[string]findings.Ulimit) Check {
	got, ok := found[asked.Name]
	if ok && asked.Name == "nofile" {
		got.Soft = asked.Soft // Go programs, as the probe is one, raise their own
	}
	return compare(limitRing, asked.Name, ok && got.Soft == asked.Soft && got.Hard == asked.Hard,
		fmt.Sprintf("%d, at most %d", asked.Soft, asked.Hard), fmt.Sprintf("%d, at most %d", got.Soft, got.Hard))
}

// plainDevices are those that every sandbox has, as major and minor numbers:
// null, zero, full, random, urandom, tty, console, ptmx.
var plainDevices = map[[2]uint32]bool{{1, 3}: true, {1, 5}: true, {1, 7}: true, {1, 8}: true, {1, 9}: true, {5, 0}: true, {5, 1}: true, {5, 2}: true}

// Terminals have these major numbers.
const firstTerminal, lastTerminal = 136, 143

func checkDevices(e *Evidence) []Check {
	const ring = "devices"
	var strange []string
	for _, d := range e.Inside.Devices {
		isTerminal := d.Major >= firstTerminal && d.Major <= lastTerminal
		if d.Block || !plainDevices[[2]uint32{d.Major, d.Minor}] && !isTerminal {
			strange = append(strange, fmt.Sprintf("%s (%d:%d)", d.Path, d.Major, d.Minor))
		}
	}
	devices := compare(ring, "devices", len(strange) == 0 && len(e.Inside.Devices) > 0, "only null, zero, full, random and terminals", yesNo(len(strange) == 0, "only those", "also "+listed(strange)))
	if e.Spec.GPUs != "" {
		devices = note(ring, "devices", "those of "+e.Spec.GPUs+" too", "besides the plain ones: "+listed(strange))
	}
	return []Check{devices, compare(ring, "engine and host sockets", len(e.Inside.Sockets) == 0, "none", listed(e.Inside.Sockets)), checkSockets(ring, e)}
}
