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
		l = &checkedListener{Listener: l, server: s}
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
	s.listeners = append(s.listeners, &ownerListener{Listener: l, server: s, uid: os.Geteuid()})
	return nil
}

// listenSocket listens on a unix socket that only this user can connect to.
func listenSocket(ctx context.Context, path string) (net.Listener, error) {
	if err := checkSocket(path); err != nil {
		return nil, err
	}
	if err := removeStaleSocket(path); err != nil {
		return nil, err
	}
	before := syscall.Umask(0o177)
	defer syscall.Umask(before)
	return (&net.ListenConfig{}).Listen(ctx, "unix", path)
}

// checkedListener closes connections from networks that are not allowed, and those
// above the limits, when they are accepted.
type checkedListener struct {
	net.Listener
	server *Server
}

func (g *checkedListener) Accept() (net.Conn, error) {
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
			if counted := g.server.conns.add(c, key); counted != nil {
				return counted, nil
			}
		}
		_ = c.Close()
	}
}

// allowed reports whether a connection is encrypted, local, or within a trusted
// network.
func (s *Server) allowed(local, remote netip.Addr) bool {
	return s.options.TLS.isSet() || local.IsLoopback() && remote.IsLoopback() || s.trusted.contain(local, remote)
}

func address(a net.Addr) netip.Addr {
	at, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap()
}

// ownerListener accepts connections of the user that the gateway runs as, and of
// root.
type ownerListener struct {
	net.Listener
	server *Server
	uid    int
}

// ownerConn is a connection whose peer user id the kernel has confirmed.
type ownerConn struct{ net.Conn }

func (o *ownerListener) Accept() (net.Conn, error) {
	for {
		c, err := o.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if uid, err := peerUID(c); err == nil && (uid == o.uid || uid == 0) {
			if counted := o.server.conns.add(c, ""); counted != nil {
				return &ownerConn{counted}, nil
			}
		}
		_ = c.Close()
	}
}

// peerUID returns the user id of the peer of a unix socket (SO_PEERCRED).
func peerUID(c net.Conn) (uid int, err error) {
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

// connCounter counts open connections, in total and per key: a remote address, or a
// token.
type connCounter struct {
	max, maxPerKey int

	mu    sync.Mutex
	total int
	ever  int // with those that are closed
	byKey map[string]int
}

// add counts a connection until it is closed, and returns nil above a limit. An
// empty address is counted in the total only.
func (c *connCounter) add(conn net.Conn, from string) net.Conn {
	release, ok := c.reserve(from)
	if !ok {
		return nil
	}
	return &countedConn{Conn: conn, release: release}
}

// reserve counts a connection until release is called; ok is false above a limit.
func (c *connCounter) reserve(key string) (release func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.total >= c.max || key != "" && c.byKey[key] >= c.maxPerKey {
		return nil, false
	}
	c.total++
	c.ever++
	if key != "" {
		c.byKey[key]++
	}
	return sync.OnceFunc(func() { c.remove(key) }), true
}

func (c *connCounter) remove(from string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total--
	if from == "" {
		return
	}
	if c.byKey[from]--; c.byKey[from] <= 0 {
		delete(c.byKey, from)
	}
}

func (c *connCounter) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}

func (c *connCounter) countEver() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ever
}

type countedConn struct {
	net.Conn
	release func()
}

func (c *countedConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}
