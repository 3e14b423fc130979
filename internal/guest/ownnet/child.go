package ownnet

import (
	"encoding/binary"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// requestSize is the length of a request on the connection.
const requestSize = 23

func (r *request) encode() []byte {
	b := []byte{r.family, r.kind, 0}
	if r.bind {
		b[2] = 1
	}
	b = append(b, r.address[:]...)
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, r.port), r.backlog)
}

func decode(b []byte) request {
	r := request{family: b[0], kind: b[1], bind: b[2] == 1, port: binary.BigEndian.Uint16(b[19:]), backlog: binary.BigEndian.Uint16(b[21:])}
	copy(r.address[:], b[3:])
	return r
}

// ServeFirst is the first child: it brings the loopback interface up, sends the namespaces,
// and makes sockets until the guest ends.
func ServeFirst(enableLoopback func() error) error {
	if err := enableLoopback(); err != nil {
		return answer(err)
	}
	user, err := os.Open("/proc/self/ns/user")
	if err != nil {
		return answer(err)
	}
	network, err := os.Open("/proc/self/ns/net")
	if err != nil {
		return answer(err)
	}
	if err := answer(nil, int(user.Fd()), int(network.Fd())); err != nil {
		return err
	}
	_ = errors.Join(user.Close(), network.Close())
	return Serve()
}

// Serve makes sockets until the guest ends.
func Serve() error {
	var b [requestSize + 1]byte
	for {
		n, err := unix.Read(controlFD, b[:])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil || n != requestSize:
			return err // the guest has ended
		}
		fd, made := makeSocket(decode(b[:n]))
		if made != nil {
			err = answer(made)
		} else {
			err = errors.Join(answer(nil, fd), unix.Close(fd))
		}
		if err != nil {
			return err
		}
	}
}

// answer sends an error's number, or descriptors.
func answer(err error, fds ...int) error {
	number := byte(0)
	if err != nil {
		number = byte(unix.EIO)
		if errno, ok := errors.AsType[unix.Errno](err); ok && errno < 256 {
			number = byte(errno)
		}
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	return unix.Sendmsg(controlFD, []byte{number}, rights, nil, 0)
}

func makeSocket(r request) (int, error) {
	fd, err := unix.Socket(int(r.family), int(r.kind)|unix.SOCK_CLOEXEC, 0)
	if err != nil || !r.bind {
		return fd, err
	}
	if r.kind == unix.SOCK_STREAM { // the port can be opened again while connections are in TIME_WAIT
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	}
	var address unix.Sockaddr = &unix.SockaddrInet4{Port: int(r.port), Addr: [4]byte(r.address[:4])}
	if r.family == unix.AF_INET6 {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1)
		address = &unix.SockaddrInet6{Port: int(r.port), Addr: r.address}
	}
	err = unix.Bind(fd, address)
	if err == nil && r.kind == unix.SOCK_STREAM {
		err = unix.Listen(fd, int(r.backlog))
	}
	if err != nil {
		unix.Close(fd)
		return 0, err
	}
	return fd, nil
}
