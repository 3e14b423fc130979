package ports

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/wire"
)

// acceptRetry is the pause after accept failed for want of descriptors.
const acceptRetry = 100 * time.Millisecond

// endpoint is where a listener listens: on one address, or on both loopback addresses
// if it has none.
type endpoint struct {
	address netip.Addr
	port    int
}

func (e endpoint) listen(backlog int) ([]net.Listener, *wire.Bound, error) {
	if !e.address.IsValid() {
		return listenBoth(e.port, backlog)
	}
	listener, err := listenLoopback(&unix.SockaddrInet4{Port: e.port, Addr: e.address.As4()}, backlog)
	if err != nil {
		return nil, nil, toWireError(err)
	}
	return []net.Listener{listener}, &wire.Bound{IPv4: true, Address: e.address.String()}, nil
}

// listenBoth listens on both loopback addresses. A sandbox without one of the protocols
// has the other.
func listenBoth(port, backlog int) ([]net.Listener, *wire.Bound, error) {
	v4, err := listenLoopback(&unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}, backlog)
	if err != nil && !missingProtocol(err) {
		return nil, nil, toWireError(err)
	}
	v6, err6 := listenLoopback(&unix.SockaddrInet6{Port: port, Addr: [16]byte{15: 1}}, backlog)
	if err6 != nil && (!missingProtocol(err6) || err != nil) {
		if v4 != nil {
			v4.Close()
		}
		return nil, nil, toWireError(err6)
	}
	both := slices.DeleteFunc([]net.Listener{v4, v6}, func(l net.Listener) bool { return l == nil })
	return both, &wire.Bound{IPv4: v4 != nil, IPv6: v6 != nil}, nil
}

func missingProtocol(err error) bool {
	return errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EADDRNOTAVAIL)
}

func closeAll(listeners []net.Listener) {
	for _, listener := range listeners {
		listener.Close()
	}
}

// acceptAll passes one connection after the other to deliver. The rest wait in the
// kernel.
func acceptAll(listener net.Listener, closed <-chan struct{}, deliver func(net.Conn)) {
	for {
		conn, err := listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err == nil:
			deliver(conn)
			continue
		}
		select { // no descriptors are left: wait until others were closed
		case <-time.After(acceptRetry):
		case <-closed:
			return
		}
	}
}

// listenLoopback listens on a loopback address with a given backlog, which package net
// does not offer.
func listenLoopback(address unix.Sockaddr, backlog int) (net.Listener, error) {
	fd, err := network.Bound(address, unix.SOCK_STREAM, backlog)
	if err != nil {
		return nil, err
	}
	file := fileOf(fd, "listener")
	defer file.Close()
	return net.FileListener(file)
}

// abort closes a connection with RST (SO_LINGER 0).
func abort(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	conn.Close()
}
