package socket

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Empty reports that nothing has come on a socket, not even its end. It takes
// nothing from it, does not wait, and does not tell the scheduler.
func Empty(fd uintptr) bool {
	var one byte
	_, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(&one)), 1, unix.MSG_PEEK|unix.MSG_DONTWAIT, 0, 0)
	return errno == unix.EAGAIN
}

// PeerClosed reports that nothing will come any more but what has come already, also
// while nobody reads that.
func (c *Conn) PeerClosed() bool {
	over := false
	err := c.from.Control(func(fd uintptr) {
		state := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(state, 0)
		over = err == nil && n > 0
	})
	return over || err != nil // there is no such descriptor any more
}
