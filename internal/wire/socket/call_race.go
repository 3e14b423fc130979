//go:build race

package socket

import (
	"errors"
	"syscall"
	"unsafe"
)

// call moves the first piece. The detector of races learns from announced calls
// that what came before a write comes before its read.
func (t *transfer) call(fd uintptr) (n int, _ syscall.Errno) {
	piece := unsafe.Slice(t.pieces[0].Base, t.pieces[0].Len)
	var err error
	if t.one == syscall.SYS_READ {
		n, err = syscall.Read(int(fd), piece)
	} else {
		n, err = syscall.Write(int(fd), piece)
	}
	if err == nil {
		return n, 0
	}
	errno, ok := errors.AsType[syscall.Errno](err)
	if !ok {
		errno = syscall.EIO
	}
	return n, errno
}
