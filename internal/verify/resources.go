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

func judgeLimits(e *Evidence) []Check {
	const ring = "limits"
	asked, inside := e.Spec.Limits, e.Inside.Limits
	seen := e.Outside.Limits
	pids, memory, cpus := cmp.Or(seen.Pids, inside.Pids), cmp.Or(seen.Memory, inside.Memory), cmp.Or(seen.CPUs, inside.CPUs)
	checks := []Check{
		judgeLimit(ring, "processes", plainly, float64(asked.Pids), float64(pids), pids > 0 && pids <= asked.Pids+pidsReserve),
		judgeLimit(ring, "memory", inBytes, float64(asked.Memory), float64(memory), memory > 0 && memory <= asked.Memory),
		judgeLimit(ring, "processors", plainly, asked.CPUs, cpus, cpus > 0 && math.Abs(cpus-asked.CPUs) < 0.01),
	}
	if total := asked.MemorySwap; total > 0 {
		found := cmp.Or(seen.Swap, inside.Swap)
		checks = append(checks, judgeLimit(ring, "memory and swap", inBytes, float64(total), float64(found), found > 0 && found <= total))
	}
	checks = append(checks, judgeDisks(ring, e)...)
	for _, u := range asked.Ulimits {
		checks = append(checks, judgeUlimit(ring, u, inside.Resource))
	}
	return checks
}

// judgeDisks says nothing of what was not asked for: most sandboxes have none of
// these limits.
func judgeDisks(ring string, e *Evidence) []Check {
	asked, inside, storage := e.Spec.Limits.IO, e.Inside.Limits.Disks, e.Spec.Limits.Storage
	if e.Spec.ReadOnlyRoot {
		storage = sandbox.Storage{}
	}
	var checks []Check
	for _, limit := range []struct {
		name         string
		spell        spelling
		asked, found int64
	}{
		{"read a second", inBytes, asked.ReadBps, inside.ReadBps}, {"written a second", inBytes, asked.WriteBps, inside.WriteBps},
		{"reads a second", plainly, asked.ReadIOps, inside.ReadIOps}, {"writes a second", plainly, asked.WriteIOps, inside.WriteIOps},
		{"size of the root", inBytes, storage.Size, inside.Root}, {"files of the root", plainly, storage.Inodes, inside.Inodes},
	} {
		if limit.asked > 0 {
			checks = append(checks, judgeLimit(ring, limit.name, limit.spell, float64(limit.asked), float64(limit.found), limit.found > 0 && limit.found <= limit.asked))
		}
	}
	return checks
}

func judgeLimit(ring, name string, spell spelling, asked, found float64, holds bool) Check {
	if asked == 0 {
		return note(ring, name, "no limit asked", amount(spell, found))
	}
	return compare(ring, name, holds, amount(spell, asked), amount(spell, found))
}

func amount(spell spelling, n float64) string {
	switch {
	case n < 0:
		return "no limit"
	case n == 0:
		return "none to be seen"
	}
	return spell(n)
}

// spelling writes a number for people.
type spelling func(float64) string

func plainly(n float64) string { return fmt.Sprintf("%.12g", n) }

// inBytes uses the largest unit that the number is a multiple of.
func inBytes(n float64) string {
	const step = 1024
	unit, units := "bytes", []string{"KiB", "MiB", "GiB", "TiB"}
	for i := 0; i < len(units) && n >= step && math.Mod(n, step) == 0; i++ {
		n, unit = n/step, units[i]
	}
	return plainly(n) + " " + unit
}

func judgeUlimit(ring string, asked sandbox.Ulimit, found map[string]findings.Ulimit) Check {
	got, ok := found[asked.Name]
	if ok && asked.Name == "nofile" {
		got.Soft = asked.Soft // Go programs, as the probe is one, raise their own
	}
	return compare(ring, asked.Name, ok && got.Soft == asked.Soft && got.Hard == asked.Hard,
		fmt.Sprintf("%d, at most %d", asked.Soft, asked.Hard), fmt.Sprintf("%d, at most %d", got.Soft, got.Hard))
}

// plainDevices are those that every sandbox has, as major and minor numbers:
// null, zero, full, random, urandom, tty, console, ptmx.
var plainDevices = map[[2]uint32]bool{{1, 3}: true, {1, 5}: true, {1, 7}: true, {1, 8}: true, {1, 9}: true, {5, 0}: true, {5, 1}: true, {5, 2}: true}

// Terminals have these major numbers.
const firstTerminal, lastTerminal = 136, 143

func judgeDevices(e *Evidence) []Check {
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
	return []Check{devices, compare(ring, "engine and host sockets", len(e.Inside.Sockets) == 0, "none", listed(e.Inside.Sockets))}
}
