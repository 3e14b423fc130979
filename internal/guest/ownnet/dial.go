package ownnet

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Dial connects to a port of the loopback interface of the sandbox's network.
func (n *Namespace) Dial(ctx context.Context, _, address string) (net.Conn, error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	family, peer := unix.AF_INET, unix.Sockaddr(&unix.SockaddrInet4{Port: int(to.Port()), Addr: [4]byte(to.Addr().AsSlice()[:4])})
	if to.Addr().Is6() {
		family, peer = unix.AF_INET6, &unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()}
	}
	fd, err := n.Socket(family, unix.SOCK_STREAM)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "connection")
	defer file.Close()
	if err := connect(ctx, fd, peer); err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, err
	}
	return net.FileConn(file)
}

// connect connects within the time that ctx has left.
func connect(ctx context.Context, fd int, peer unix.Sockaddr) error {
	if deadline, ok := ctx.Deadline(); ok {
		left := unix.NsecToTimeval(max(time.Until(deadline), time.Millisecond).Nanoseconds())
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &left); err != nil {
			return err
		}
	}
	err := unix.Connect(fd, peer)
	if err == unix.EINPROGRESS || err == unix.EAGAIN {
		return unix.ETIMEDOUT
	}
	return err
}
