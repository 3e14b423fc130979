package guest

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// listenLoopback listens on a loopback address. Package net would choose the
// backlog by itself.
func listenLoopback(address unix.Sockaddr, backlog int) (net.Listener, error) {
	family := unix.AF_INET
	if _, ok := address.(*unix.SockaddrInet6); ok {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	file := os.NewFile(uintptr(fd), "listener")
	defer file.Close()
	// A port whose last connections have not faded yet can be opened again.
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	if family == unix.AF_INET6 {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1)
	}
	if err := unix.Bind(fd, address); err != nil {
		return nil, fmt.Errorf("bind: %w", err)
	}
	if err := unix.Listen(fd, backlog); err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return net.FileListener(file)
}

// abort ends a connection so that the other side notices that it was not meant.
func abort(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	conn.Close()
}
