package gateway

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/errhint"
)

// listen opens every listener.
func (s *Server) listen(ctx context.Context) error {
	for _, address := range s.options.Listen {
		if err := checkAddress(address, s.options.TLS.isSet(), s.trusted); err != nil {
			return err
		}
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err != nil {
			return errhint.With(fmt.Errorf("gateway: %w", err), "stop what listens there, or choose another address with --listen")
		}
		l = &guarded{Listener: l, server: s}
		if s.options.TLS.isSet() {
			l = tls.NewListener(l, s.tlsConfig())
		}
		s.listeners = append(s.listeners, l)
	}
	if s.options.Socket == "" {
		return nil
	}
	l, err := listenSocket(ctx, s.options.Socket)
	if err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	s.listeners = append(s.listeners, &owners{Listener: l, server: s, uid: os.Geteuid()})
	return nil
}

// listenSocket makes a socket that belongs to this user alone.
func listenSocket(ctx context.Context, path string) (net.Listener, error) {
	if err := checkSocket(path); err != nil {
		return nil, err
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	before := syscall.Umask(0o177)
	defer syscall.Umask(before)
	return (&net.ListenConfig{}).Listen(ctx, "unix", path)
}

// guarded cuts connections that may not be here, before they say anything.
type guarded struct {
	net.Listener
	server *Server
}

func (g *guarded) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		local, remote := address(c.LocalAddr()), address(c.RemoteAddr())
		if g.server.allowed(local, remote) {
			key := ""
			if !remote.IsLoopback() {
				key = remote.String()
			}
			if counted := g.server.crowd.take(c, key); counted != nil {
				return counted, nil
			}
		}
		_ = c.Close()
	}
}

// allowed reports whether a connection crosses only what it may in the clear.
func (s *Server) allowed(local, remote netip.Addr) bool {
	return s.options.TLS.isSet() || local.IsLoopback() && remote.IsLoopback() || s.trusted.holds(local, remote)
}

func address(a net.Addr) netip.Addr {
	at, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap()
}

// owners takes connections of the user that the gateway runs as, and of root.
type owners struct {
	net.Listener
	server *Server
	uid    int
}

// ownersConn is a connection whose other end the kernel vouches for.
type ownersConn struct{ net.Conn }

func (o *owners) Accept() (net.Conn, error) {
	for {
		c, err := o.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if uid, err := peerOf(c); err == nil && (uid == o.uid || uid == 0) {
			if counted := o.server.crowd.take(c, ""); counted != nil {
				return &ownersConn{counted}, nil
			}
		}
		_ = c.Close()
	}
}

// peerOf asks the kernel who connected.
func peerOf(c net.Conn) (uid int, err error) {
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		return 0, err
	}
	var peer *unix.Ucred
	if controlErr := raw.Control(func(fd uintptr) { peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); controlErr != nil {
		return 0, controlErr
	}
	if err != nil {
		return 0, err
	}
	return int(peer.Uid), nil
}

// crowd counts connections, all of them and those of each address.
type crowd struct {
	most, each int

	mu   sync.Mutex
	all  int
	from map[string]int
}

// take counts a connection until it is closed; nil if there are too many. Those of
// "" are counted together with the others only.
func (c *crowd) take(conn net.Conn, from string) net.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all >= c.most || from != "" && c.from[from] >= c.each {
		return nil
	}
	c.all++
	if from != "" {
		c.from[from]++
	}
	return &countedConn{Conn: conn, leave: sync.OnceFunc(func() { c.leave(from) })}
}

func (c *crowd) leave(from string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all--
	if from == "" {
		return
	}
	if c.from[from]--; c.from[from] <= 0 {
		delete(c.from, from)
	}
}

func (c *crowd) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all
}

type countedConn struct {
	net.Conn
	leave func()
}

func (c *countedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
