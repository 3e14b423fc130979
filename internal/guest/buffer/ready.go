package buffer

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// ReadReady calls read when file is readable, so that no buffer is held before. It
// returns what read returned, or -1.
func ReadReady(file syscall.Conn, wait bool, read func(fd int) (int, error)) int {
	conn, err := file.SyscallConn()
	if err != nil {
		return -1
	}
	n := -1
	err = conn.Read(func(fd uintptr) bool {
		for {
			var errno error
			n, errno = read(int(fd))
			switch {
			case errors.Is(errno, unix.EINTR):
				continue
			case errors.Is(errno, unix.EAGAIN):
				return !wait
			case errors.Is(errno, unix.EIO): // a terminal that no process has open
				n = 0
			}
			return true
		}
	})
	if err != nil {
		return -1
	}
	return n
}
