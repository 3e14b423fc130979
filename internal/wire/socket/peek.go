package socket

import (
	"golang.org/x/sys/unix"
)

// PeerClosed reports whether the peer has closed its side, also while bytes that
// it sent before are unread.
func (c *Conn) PeerClosed() bool {
	over := false
	err := c.from.Control(func(fd uintptr) {
		state := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(state, 0)
		over = err == nil && n > 0
	})
	return over || err != nil // the descriptor is closed
}
