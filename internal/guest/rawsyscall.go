package guest

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// The system calls of a short command never block, and are made without the Go
// scheduler's entry and exit hooks. Those would wake its monitor thread, which then runs
// every 20 microseconds on the processor that the command needs.

// readNow reads from a non-blocking descriptor.
func readNow(fd int, b []byte) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	return int(n), errno
}

// closeNow closes a pipe.
func closeNow(fd int) { _, _, _ = unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0) }

// setFlags sets the status flags of a descriptor.
func setFlags(fd, flags int) {
	_, _, _ = unix.RawSyscall(unix.SYS_FCNTL, uintptr(fd), unix.F_SETFL, uintptr(flags))
}
