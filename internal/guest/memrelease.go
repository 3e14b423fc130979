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
	// releaseAfter is how long the guest must be idle before it releases memory. The next
	// request has to fault in some 40 pages again, so it is longer than the pauses of a
	// busy host. It is also longer than the timers of a handshake or a token (see
	// wire.HelloTimeout): even a stopped timer wakes the runtime once, which touches pages.
	releaseAfter = 6 * time.Second
	// startOver is when the guest has started.
	startOver = 200 * time.Millisecond
)

// memoryReleaser returns memory to the kernel when the guest is idle.
type memoryReleaser struct {
	timer       *time.Timer
	program     func() []addressRange
	collections int64 // garbage collections at the last release
}

// addressRange is a range of addresses.
type addressRange struct{ from, to uintptr }

func newMemoryReleaser() *memoryReleaser {
	t := &memoryReleaser{program: sync.OnceValue(programRanges)} // computed at the first release, not at the start
	t.timer = time.AfterFunc(releaseAfter, t.release)
	t.timer.Stop()
	time.AfterFunc(startOver, t.dropProgram)
	return t
}

// schedule postpones the release until the guest was idle for releaseAfter.
func (t *memoryReleaser) schedule() { t.timer.Reset(releaseAfter) }

// release returns unused memory to the kernel.
func (t *memoryReleaser) release() {
	if t.collected() {
		// Each collection frees a part of the pools and shrinks stacks by half.
		for range 3 {
			runtime.GC()
		}
	}
	debug.FreeOSMemory() // which collects, too
	t.collections = collections()
	t.dropProgram()
}

// collected reports whether the garbage collector ran since the last release.
func (t *memoryReleaser) collected() bool { return collections() != t.collections }

func collections() int64 {
	var stats debug.GCStats
	debug.ReadGCStats(&stats)
	return stats.NumGC
}

// dropProgram drops the pages of the program itself. All sandboxes share them in the page
// cache: what is needed again is mapped from there.
func (t *memoryReleaser) dropProgram() {
	for _, s := range t.program() {
		_, _, _ = unix.RawSyscall(unix.SYS_MADVISE, s.from, s.to-s.from, unix.MADV_DONTNEED)
	}
}

// programRanges returns the mappings of the program that are not writable.
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
			program = fields[5] // the first mapping is the program's
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
