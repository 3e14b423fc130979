//go:build !race

package socket

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// call moves what the kernel can move without waiting.
func (t *transfer) call(fd uintptr) (int, syscall.Errno) {
	if t.used == 1 {
		n, _, errno := unix.RawSyscall(t.one, fd, uintptr(unsafe.Pointer(t.pieces[0].Base)), uintptr(t.pieces[0].Len))
		return int(n), errno
	}
	n, _, errno := unix.RawSyscall(t.many, fd, uintptr(unsafe.Pointer(&t.pieces[0])), uintptr(t.used))
	return int(n), errno
}
