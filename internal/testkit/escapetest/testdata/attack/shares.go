package main

import (
	"golang.org/x/sys/unix"
)

// mostInMessage is how many descriptors one message carries.
const mostInMessage = 253

// flight sends descriptors that no process receives: the kernel counts by user
// how many are on their way.
func flight(a *attempts, args []string) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	must(err)
	_ = unix.SetsockoptInt(pair[0], unix.SOL_SOCKET, unix.SO_SNDBUF, socketBuffer)
	var fds [mostInMessage]int
	for i := range fds {
		fds[i] = pair[0]
	}
	rights := unix.UnixRights(fds[:]...)
	bomb(a, "253 descriptors in flight", number(args[0])/mostInMessage+1, func(int) error {
		return unix.Sendmsg(pair[0], []byte{0}, rights, nil, 0)
	})
}
