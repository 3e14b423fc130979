package guest

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// The calls of a command that is over soon never wait, and are made without
// telling the Go scheduler. It would wake its monitor at the first of them, which
// then looks around every 20 microseconds: on the processor that the command
// needs.

// readNow reads what is there.
func readNow(fd int, b []byte) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	return int(n), errno
}

// closeNow closes a pipe.
func closeNow(fd int) { _, _, _ = unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0) }

// setFlags sets the flags of an open file.
func setFlags(fd, flags int) {
	_, _, _ = unix.RawSyscall(unix.SYS_FCNTL, uintptr(fd), unix.F_SETFL, uintptr(flags))
}
