package ports

import (
	"context"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// Network makes the sockets of the ports.
type Network interface {
	// Bound returns a socket of the kind (SOCK_STREAM, SOCK_DGRAM) that is bound to an
	// address, and listens if it is a stream.
	Bound(address unix.Sockaddr, kind, backlog int) (int, error)
	Dial(ctx context.Context, network, address string) (net.Conn, error)
}

// network is where the sandbox's processes are: with the guest, unless UseNetwork said
// otherwise.
var network Network = guestNetwork{}

// UseNetwork makes the ports those of another network. Call it before a port is opened.
func UseNetwork(n Network) { network = n }

// guestNetwork is the guest's own network.
type guestNetwork struct{}

// Dial implements Network.
func (guestNetwork) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, address)
}

// Bound implements Network.
func (guestNetwork) Bound(address unix.Sockaddr, kind, backlog int) (int, error) {
	family := unix.AF_INET
	if _, ok := address.(*unix.SockaddrInet6); ok {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, kind|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("socket: %w", err)
	}
	if err := bind(fd, address, kind, backlog); err != nil {
		unix.Close(fd)
		return 0, err
	}
	return fd, nil
}

func bind(fd int, address unix.Sockaddr, kind, backlog int) error {
	if kind == unix.SOCK_STREAM { // the port can be opened again while connections are in TIME_WAIT
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	}
	if _, ok := address.(*unix.SockaddrInet6); ok {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1)
	}
	if err := unix.Bind(fd, address); err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	if kind != unix.SOCK_STREAM {
		return nil
	}
	if err := unix.Listen(fd, backlog); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	return nil
}

// listenDatagrams opens a UDP port of the loopback interface.
func listenDatagrams(port int) (*net.UDPConn, error) {
	fd, err := network.Bound(&unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}, unix.SOCK_DGRAM, 0)
	if err != nil {
		return nil, err
	}
	file := fileOf(fd, "datagrams")
	defer file.Close()
	conn, err := net.FilePacketConn(file)
	if err != nil {
		return nil, err
	}
	return conn.(*net.UDPConn), nil
}

// fileOf returns a descriptor as a file whose reads do not block a thread.
func fileOf(fd int, name string) *os.File {
	_ = unix.SetNonblock(fd, true) // fails for no socket
	return os.NewFile(uintptr(fd), name)
}
