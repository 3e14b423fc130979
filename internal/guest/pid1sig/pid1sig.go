// Package pid1sig makes a sandbox's process 1 deaf to signals from inside the
// sandbox, where everybody may send it any, and keeps its ear open to the one
// that asks it from outside to end.
//
// The Go runtime's handlers do not fit: they end the program, for a SIGSEGV that
// was merely sent as much as for a real one, and do not say who sent a signal.
// Having no handlers would seem to fit, as the kernel keeps signals without one
// from process 1; but it forgets that when the first thread happens to block the
// signal, as Go's do now and then, and another does not. So nearly every signal
// gets a handler of our own, a few instructions long, that does nothing; signals
// that tell of faults are ignored, so that only a real one ends the program; and
// the one to end looks at the sender: a process outside the pid namespace has
// number 0, and a code of 0 means that the kernel says so and not the sender.
package pid1sig

import (
	"fmt"
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The handlers are written in assembly; these return where they are.
func swallowPC() uintptr
func listenPC() uintptr
func restorePC() uintptr

// notify is the descriptor to which listen writes one. A signal handler has no
// other place to look for it.
var notify int32 //nolint:unused // the handlers in assembly use it

// one is what listen writes.
var one uint64 = 1 //nolint:unused // the handlers in assembly use it

// sigaction is the kernel's.
type sigaction struct {
	handler, flags, restorer uintptr
	mask                     uint64
}

const (
	sigIgnore  = 1
	saSigInfo  = 0x4
	saRestorer = 0x04000000
	saOnStack  = 0x08000000
	saRestart  = 0x10000000

	lastSignal = 64
)

// Install makes the process deaf, for good. The file becomes readable when ask
// came from outside the pid namespace. Signals in keep stay as they are.
func Install(ask unix.Signal, keep ...unix.Signal) (*os.File, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	notify = int32(fd)
	kept := map[unix.Signal]bool{unix.SIGKILL: true, unix.SIGSTOP: true}
	for _, sig := range keep {
		kept[sig] = true
	}
	for sig := unix.Signal(1); sig <= lastSignal; sig++ {
		if kept[sig] {
			continue
		}
		if err := set(sig, actionFor(sig, ask)); err != nil {
			unix.Close(fd)
			return nil, fmt.Errorf("signal %d: %w", sig, err)
		}
	}
	return os.NewFile(uintptr(fd), "asked to end"), nil
}

// faults are the signals that tell of faults.
var faults = []unix.Signal{unix.SIGSEGV, unix.SIGBUS, unix.SIGFPE, unix.SIGILL, unix.SIGTRAP, unix.SIGSYS}

// Unmasked are the signals of a deaf process that do not have a handler of ours,
// given those it kept.
func Unmasked(keep ...unix.Signal) []unix.Signal { return append(keep, faults...) }

func actionFor(sig, ask unix.Signal) *sigaction {
	action := &sigaction{swallowPC(), saSigInfo | saOnStack | saRestart | saRestorer, restorePC(), ^uint64(0)}
	switch {
	case sig == ask:
		action.handler = listenPC()
	case slices.Contains(faults, sig):
		return &sigaction{handler: sigIgnore}
	}
	return action
}

func set(sig unix.Signal, action *sigaction) error {
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(action)), 0, 8, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
