package guest

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// births tells whether anybody but the guest has made a process. If nobody has,
// an exec whose process has ended has left nothing behind, and nobody has to be
// looked for.
//
// The kernel hands out process numbers in turn, and says which was the last. So
// if it went up by as many as the guest has taken, nobody else took one: whoever
// forks takes at least one, whatever it does besides, and without privileges
// cannot choose it. Only after all numbers were handed out does it begin anew,
// so two readings are compared only if that cannot have happened between them.
type births struct {
	file  int           // /proc/loadavg, whose last word it is; -1: the kernel does not say
	cycle time.Duration // in which all numbers cannot have been handed out
}

const (
	// reservedPIDs are those that the kernel leaves out when it begins anew.
	reservedPIDs = 300
	// quickestFork is less than any kernel takes to hand out a number: it does so
	// under one lock for all processors.
	quickestFork = 2 * time.Microsecond
	maxCycle     = time.Second
)

func newBirths() *births {
	fd, err := unix.Open("/proc/loadavg", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &births{file: -1}
	}
	most, _ := os.ReadFile("/proc/sys/kernel/pid_max")
	numbers, _ := strconv.Atoi(string(bytes.TrimSpace(most)))
	return &births{file: fd, cycle: min(time.Duration(max(numbers-reservedPIDs, 0))*quickestFork, maxCycle)}
}

// headcount is how many processes were made, up to one moment.
type headcount struct {
	last int    // the number that the kernel handed out last; 0: unknown
	ours uint64 // how many the guest has taken
	at   time.Time
}

// count asks the kernel. No process of the guest may be in the making.
func (b *births) count(ours uint64) headcount {
	var buf [128]byte
	n, err := unix.Pread(b.file, buf[:], 0)
	if err != nil {
		return headcount{}
	}
	words := bytes.TrimSpace(buf[:n])
	last, err := strconv.Atoi(string(words[bytes.LastIndexByte(words, ' ')+1:]))
	if err != nil {
		return headcount{}
	}
	return headcount{last: last, ours: ours, at: time.Now()}
}

// onlyOurs reports whether it is certain that nobody but the guest has made a
// process between two counts.
func (b *births) onlyOurs(from, to headcount) bool {
	return from.last > 0 && to.last > from.last && uint64(to.last-from.last) == to.ours-from.ours && to.at.Sub(from.at) < b.cycle
}
