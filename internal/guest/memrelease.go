package guest

import (
	"bufio"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// releaseAfter is how long the guest must be idle before it gives memory back.
	// What is done next has to fetch some 40 pages again, so that is not done
	// between the calls of somebody who works. And it is later than the timers
	// that a greeting or a promise leaves in the runtime (see wire.HelloTimeout):
	// even one that was stopped wakes it once, and has it touch its program.
	releaseAfter = 6 * time.Second
	// startOver is when the start is over.
	startOver = 200 * time.Millisecond
)

// memoryReleaser gives memory back to the sandbox after work.
type memoryReleaser struct {
	timer       *time.Timer
	program     func() []addressRange
	collections int64 // of the runtime, by the last time
}

// addressRange is a range of addresses.
type addressRange struct{ from, to uintptr }

func newMemoryReleaser() *memoryReleaser {
	t := &memoryReleaser{program: sync.OnceValue(programRanges)} // the start need not wait for it
	t.timer = time.AfterFunc(releaseAfter, t.release)
	t.timer.Stop()
	time.AfterFunc(startOver, t.dropProgram)
	return t
}

// schedule puts tidying off until things are quiet.
func (t *memoryReleaser) schedule() { t.timer.Reset(releaseAfter) }

// release returns what is not in use.
func (t *memoryReleaser) release() {
	if t.collected() {
		// Each collection empties pools, and shrinks stacks, halfway.
		for range 3 {
			runtime.GC()
		}
	}
	debug.FreeOSMemory() // which collects, too
	t.collections = collections()
	t.dropProgram()
}

// collected reports whether so much was done that the runtime had to collect.
func (t *memoryReleaser) collected() bool { return collections() != t.collections }

func collections() int64 {
	var stats debug.GCStats
	debug.ReadGCStats(&stats)
	return stats.NumGC
}

// dropProgram gives up the pages of the program itself. They are in the page
// cache, whose copy all sandboxes share: what is needed comes back from there,
// and what only the start or the work needed does not.
func (t *memoryReleaser) dropProgram() {
	for _, s := range t.program() {
		_, _, _ = unix.RawSyscall(unix.SYS_MADVISE, s.from, s.to-s.from, unix.MADV_DONTNEED)
	}
}

// programRanges are the parts of the program that are never written to.
func programRanges() []addressRange {
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return nil
	}
	defer maps.Close()
	var spans []addressRange
	program := ""
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 6 {
			continue
		}
		if program == "" {
			program = fields[5] // it comes first
		}
		if s, ok := parseRange(fields[0]); ok && fields[5] == program && !strings.Contains(fields[1], "w") {
			spans = append(spans, s)
		}
	}
	return spans
}

// parseRange reads "from-to".
func parseRange(bounds string) (addressRange, bool) {
	low, high, _ := strings.Cut(bounds, "-")
	from, err1 := strconv.ParseUint(low, 16, 64)
	to, err2 := strconv.ParseUint(high, 16, 64)
	return addressRange{uintptr(from), uintptr(to)}, err1 == nil && err2 == nil && from < to
}
