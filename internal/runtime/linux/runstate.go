package linux

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/runtime/cgroups"
)

// runState is one run of a sandbox, from start to end, identified by its init
// process: a pid alone is reused, so the time of its start and the id of the boot
// are stored with it.
type runState struct {
	PID   int
	Start uint64 // in clock ticks since the boot
	Boot  string
	// Paused says that its processes are frozen, or about to be.
	Paused bool `json:",omitempty"`
	// Limits are those of its control group, as the kernel reports them.
	Limits []cgroups.Kept `json:",omitempty"`
}

// newRunState returns the run of an init process that has just been started.
func newRunState(pid int) (*runState, error) {
	start, _, err := readStat(pid)
	if err != nil {
		return nil, err
	}
	return &runState{PID: pid, Start: start, Boot: bootID()}, nil
}

// bootID returns the kernel's id of the present boot.
var bootID = sync.OnceValue(func() string {
	text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text))
})

// readStat reads from /proc/PID/stat when a process was started, and its state. The
// name in the middle may contain anything.
func readStat(pid int) (start uint64, state byte, err error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0, err
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	const startField = 19 // the 22nd of all
	if len(fields) <= startField {
		return 0, 0, fmt.Errorf("process %d: its stat is incomplete", pid)
	}
	start, err = strconv.ParseUint(string(fields[startField]), 10, 64)
	return start, fields[0][0], err
}

// alive reports whether that very process runs. A zombie does not.
func (l *runState) alive() bool {
	if l == nil || l.Boot != bootID() {
		return false
	}
	start, state, err := readStat(l.PID)
	return err == nil && start == l.Start && state != 'Z' && state != 'X'
}

// openPidfd opens a pidfd of the process, so that signals reach it and no other;
// nil if it has ended.
func (l *runState) openPidfd() (*os.File, error) {
	if l == nil || l.Boot != bootID() {
		return nil, nil
	}
	fd, err := unix.PidfdOpen(l.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", l.PID, err)
	}
	if !l.alive() { // checked after the opening: now it is this process or none
		unix.Close(fd)
		return nil, nil
	}
	return os.NewFile(uintptr(fd), "pidfd"), nil
}

// signal sends a signal; it is no error if the process has ended.
func signal(held *os.File, sig unix.Signal) error {
	err := unix.PidfdSendSignal(int(held.Fd()), sig, nil, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// pollStep is the longest wait between two checks of a context.
const pollStep = 50 * time.Millisecond

// await waits until the process has ended. With process 1 gone, everything in
// its pid namespace is.
func await(ctx context.Context, held *os.File) error {
	fds := []unix.PollFd{{Fd: int32(held.Fd()), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, int(pollStep.Milliseconds()))
		switch {
		case n > 0:
			return nil
		case err != nil && !errors.Is(err, unix.EINTR):
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
	}
}
