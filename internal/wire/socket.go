package wire

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// DialSocket connects to the unix socket at path, which hostile code can
// write to. The last element is not followed if it is a link, and must be a
// socket; the path may be longer than a socket address allows. The caller
// then checks the peer with PeerPID.
func DialSocket(ctx context.Context, path string) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socket %q: %w", path, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, fmt.Errorf("socket %q: %w", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return nil, fmt.Errorf("socket %q: %w: it is not a socket", path, ErrProtocol)
	}
	conn, err := connect("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil {
		return nil, fmt.Errorf("socket %q: %w", path, err)
	}
	return conn, nil
}

// connect connects to a unix socket without waiting: a full backlog is an error.
// Package net would need a goroutine and a thread for it.
func connect(path string) (net.Conn, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		return nil, os.NewSyscallError("connect", err)
	}
	return net.FileConn(file)
}

// PeerPID returns, from the kernel, the process at the other end of a unix
// socket: for a client the one that listens, for a server the one that connected. It is 0 for a process outside the caller's pid namespace.
func PeerPID(conn net.Conn) (int, error) {
	cred, err := peer(conn)
	if err != nil {
		return 0, err
	}
	return int(cred.Pid), nil
}

// PeerUID returns, from the kernel, the user of the process at the other end.
func PeerUID(conn net.Conn) (int, error) {
	cred, err := peer(conn)
	if err != nil {
		return 0, err
	}
	return int(cred.Uid), nil
}

func peer(conn net.Conn) (*unix.Ucred, error) {
	uc, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, fmt.Errorf("peer of a %T: only unix sockets know theirs", conn)
	}
	raw, err := uc.SyscallConn()
	if err != nil {
		return nil, err
	}
	var cred *unix.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err != nil {
		return nil, err
	}
	return cred, credErr
}
