package main

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

const (
	socketBuffer = 4 << 20  // bytes that a buffer is asked to hold
	datagram     = 32 << 10 // bytes
	leastHeld    = 64 << 10 // bytes: a pair that holds fewer was stopped by a limit
)

// sockets keeps so many MiB in the buffers of TCP or UDP sockets. Pairs that
// hold little each are not counted: the number of descriptors bounds those.
func sockets(a *attempts, args []string) {
	hold, want, held := holdTCP, number(args[1])<<20, 0
	if args[0] == "udp" {
		hold = holdUDP
	}
	for held < want {
		n, err := hold()
		if err == nil && n < leastHeld {
			err = errors.New("buffers hold nothing more")
		}
		if err != nil {
			fmt.Printf("stopped after %d MiB: %v\n", held>>20, err)
			return
		}
		held += n
	}
	a.try(args[1]+" MiB in buffers of "+args[0], nil)
}

// holdTCP fills the buffers of a connection, leaves it open and returns how many
// bytes it took.
func holdTCP() (int, error) {
	from, _, err := tcpPair()
	if err != nil {
		return 0, err
	}
	return send(from), nil
}

// holdUDP fills the buffer of a socket, leaves it open and returns how many bytes
// it uses.
func holdUDP() (int, error) {
	to, err := bound(unix.SOCK_DGRAM)
	if err != nil {
		return 0, err
	}
	from, err := connected(to, unix.SOCK_DGRAM)
	if err != nil {
		return 0, err
	}
	send(from)
	return unix.GetsockoptInt(to, unix.SOL_SOCKET, unix.SO_MEMINFO) // the first of its numbers
}

// send sends until a buffer is full, and at most some MiB.
func send(fd int) int {
	sent, piece := 0, make([]byte, datagram)
	for sent < 4*socketBuffer {
		n, err := unix.SendmsgN(fd, piece, nil, nil, unix.MSG_DONTWAIT)
		if err != nil {
			break
		}
		sent += n
	}
	return sent
}

// tcpPair returns both ends of a connection over loopback.
func tcpPair() (from, to int, err error) {
	listener, err := bound(unix.SOCK_STREAM)
	if err != nil {
		return 0, 0, err
	}
	defer unix.Close(listener)
	if err := unix.Listen(listener, 1); err != nil {
		return 0, 0, err
	}
	if from, err = connected(listener, unix.SOCK_STREAM); err != nil {
		return 0, 0, err
	}
	to, _, err = unix.Accept4(listener, unix.SOCK_CLOEXEC)
	return from, to, err
}

// bound returns a socket with a port on loopback.
func bound(kind int) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, socketBuffer)
	return fd, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
}

// connected returns a socket that sends to another.
func connected(to, kind int) (int, error) {
	address, err := unix.Getsockname(to)
	if err != nil {
		return -1, err
	}
	fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, socketBuffer)
	return fd, unix.Connect(fd, address)
}
