// Package pid1sig installs signal handlers in a sandbox's process 1 that ignore signals
// from inside the sandbox, where every process may send it any, and report the one from
// outside that stops it.
//
// Package os/signal is not enough. It survives plain kill(2), but one
// rt_sigqueueinfo(SIGSEGV, SI_QUEUE) ends any Go program with exit status 2: the
// runtime takes it for a fault of its own code. It does not report the sender of a
// signal either. Default dispositions are not enough: the kernel keeps signals without
// a handler from process 1, but not when the first thread blocks the signal, as Go's
// threads do now and then, and another does not.
//
// So nearly every signal gets a handler of a few instructions in assembly that returns
// at once; signals of faults are ignored, so that only a real fault ends the program;
// and the handler of the stop signal checks the sender: si_pid is 0 for a process
// outside the pid namespace, and si_code 0 (kill) is set by the kernel only.
package pid1sig

import (
	"fmt"
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The handlers are written in assembly; these return their addresses.
func discardPC() uintptr
func stopPC() uintptr
func restorePC() uintptr

// notify is the descriptor to which the handler stop writes the value one.
var notify int32 //nolint:unused // the handlers in assembly use it

// one is the value that the handler stop writes.
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

// Install installs the handlers, for good. The file it returns becomes readable when the
// signal stop came from outside the pid namespace. Signals in keep are not changed.
func Install(stop unix.Signal, keep ...unix.Signal) (*os.File, error) {
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
		if err := set(sig, actionFor(sig, stop)); err != nil {
			unix.Close(fd)
			return nil, fmt.Errorf("signal %d: %w", sig, err)
		}
	}
	return os.NewFile(uintptr(fd), "stop signal"), nil
}

// faults are the signals of faults, which are ignored.
var faults = []unix.Signal{unix.SIGSEGV, unix.SIGBUS, unix.SIGFPE, unix.SIGILL, unix.SIGTRAP, unix.SIGSYS}

// Unmasked returns the signals without a handler of this package after Install, given
// those that were kept.
func Unmasked(keep ...unix.Signal) []unix.Signal { return append(keep, faults...) }

func actionFor(sig, stop unix.Signal) *sigaction {
	action := &sigaction{discardPC(), saSigInfo | saOnStack | saRestart | saRestorer, restorePC(), ^uint64(0)}
	switch {
	case sig == stop:
		action.handler = stopPC()
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
