package guest

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/files"
	"github.com/atoll-run/atoll/internal/guest/maxprocs"
)

// The guest's appetite. It shares the sandbox's memory and processors.
const (
	gcPercent = 25
	// memoryLimit makes the collector work harder beyond it. A process counts
	// the guest's peak as its own until it is larger (see wire.Exit), so the
	// guest's own must stay low. The runtime itself takes some 7 MB of it, with
	// as many commands under way as a host may have at once, and what it has
	// reserved counts as much as what it uses; nearer to that it would do little
	// but collect.
	memoryLimit = 16 << 20
)

// Harden makes the process unassailable for code with the same user, as far as
// that needs no privilege, and small. It comes before anything else. It closes
// what was inherited, but for what is to be kept.
func Harden(keep ...int) error {
	// Nobody may trace us, or open our memory and descriptors.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("dumpable: %w", err)
	}
	// Where we are not process 1, orphans come to us all the same.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil && !alone() {
		return fmt.Errorf("subreaper: %w", err)
	}
	closeInherited(keep)
	runtime.GOMAXPROCS(maxprocs.Usual)
	debug.SetGCPercent(gcPercent)
	debug.SetMemoryLimit(memoryLimit)
	go makeThreads()
	return nil
}

// closeInherited closes what whoever started us left open. The Go runtime's own
// descriptors are anonymous, and stay.
func closeInherited(keep []int) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}
	for _, entry := range entries {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil || fd < 3 || slices.Contains(keep, fd) {
			continue
		}
		target, err := os.Readlink("/proc/self/fd/" + entry.Name())
		if err == nil && !strings.HasPrefix(target, "anon_inode:") {
			unix.Close(fd)
		}
	}
}

const (
	// maxSlots is how many calls may wait for the kernel at once.
	maxSlots = 4
	// spareThreads are made at the start: as many as have slots, and some for
	// the runtime itself, signals and polling.
	spareThreads = maxSlots + files.MaxSlots + 8
)

// makeThreads has the Go runtime make threads, which it keeps, once. Later a fork
// bomb may have taken the last process number, and a Go program that cannot make
// a thread when it needs one dies. So they are there before the first process of
// the sandbox is, and hosts that only knock need not wait for them.
var makeThreads = sync.OnceFunc(func() {
	var made sync.WaitGroup
	release := make(chan struct{})
	for range spareThreads {
		made.Add(1)
		go func() {
			runtime.LockOSThread() // has a thread to itself
			defer runtime.UnlockOSThread()
			made.Done()
			<-release
		}()
	}
	made.Wait()
	close(release)
})
