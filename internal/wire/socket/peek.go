package socket

import (
	"golang.org/x/sys/unix"
)

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
