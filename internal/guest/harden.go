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

// The guest shares the sandbox's memory and processors, so it uses little.
const (
	gcPercent = 25
	// memoryLimit is the runtime's soft limit. The peak of the guest counts as that of a
	// process until it is larger (see wire.Exit), so it must stay low. The runtime itself
	// takes some 7 MB, with as many commands as a host may run at once, and reserved
	// memory counts too; with a lower limit it would do little but collect garbage.
	memoryLimit = 16 << 20
)

// Harden protects the process against code of the same user, as far as that needs no
// privilege, and limits its memory. It closes inherited descriptors except those in keep.
// Call it first.
func Harden(keep ...int) error {
	// Other processes of the user cannot trace us, or open our memory and descriptors.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("dumpable: %w", err)
	}
	// Orphans are adopted by us also where we are not process 1.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil && !isPID1() {
		return fmt.Errorf("subreaper: %w", err)
	}
	closeInherited(keep)
	runtime.GOMAXPROCS(maxprocs.Usual)
	debug.SetGCPercent(gcPercent)
	debug.SetMemoryLimit(memoryLimit)
	go makeThreads()
	return nil
}

// closeInherited closes inherited descriptors. Those of the Go runtime are anonymous
// inodes, and stay open.
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
	// spareThreads are started up front: one for each slot, and some for the runtime
	// itself, signals and polling.
	spareThreads = maxSlots + files.MaxSlots + 8
)

// makeThreads makes the Go runtime start threads, once; it keeps them. A Go program that
// needs a thread and cannot start one exits, and a fork bomb may have reached the limit
// of processes. So they exist before the first process of the sandbox does. A host that
// only connects does not wait for them.
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
