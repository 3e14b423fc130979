package ownnet

import (
	"encoding/binary"
	"errors"
	"runtime"

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

// ServeFirst is the first child: it prepares the namespaces, sends them, and makes sockets
// until the guest ends, without the capabilities that it prepared them with.
func ServeFirst(prepare func() error) error {
	if err := prepare(); err != nil {
		return answer(err)
	}
	var fds []int
	for _, name := range []string{"user", "net", "mnt"} {
		fd, err := unix.Open("/proc/self/ns/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return answer(err)
		}
		fds = append(fds, fd)
	}
	if err := answer(nil, fds...); err != nil {
		return err
	}
	return serveUnprivileged()
}

// serveUnprivileged executes this program again: each thread then has the capabilities that
// are left in the ambient set of this one.
func serveUnprivileged() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, capability := range []uintptr{unix.CAP_NET_ADMIN, unix.CAP_SYS_ADMIN} {
		if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_LOWER, capability, 0, 0); err != nil {
			return err
		}
	}
	return unix.Exec("/proc/self/exe", []string{"atoll-guest", Verb, Again}, nil)
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
