package grant

import (
	"net"
	"sync"
)

// Caller is a connection from a sandbox. GrantID returns the grant that its other end
// was started under, as the guest says: "" if none, or none that could be found.
type Caller interface{ GrantID() string }

// MaxStrangers is how many connections without a grant a Listener returns at the same
// time. More are closed at once, so that callers without a grant cannot use up the
// connections of those with one.
const MaxStrangers = 8

// Listener accepts connections together with their grants.
type Listener struct {
	net.Listener
	grants    *Grants
	strangers chan struct{} // nil: connections without a grant are closed
}

// Listener puts their grants on the connections of l, which must be Callers. Others, and
// those of callers without an open grant, are closed at once; with strangers they are
// returned without a grant, so that a server can answer them.
func (s *Grants) Listener(l net.Listener, strangers bool) *Listener {
	listener := &Listener{Listener: l, grants: s}
	if strangers {
		listener.strangers = make(chan struct{}, MaxStrangers)
	}
	return listener
}

// Accept waits for the next connection. [Of] returns its grant.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if admitted := l.admit(conn); admitted != nil {
			return admitted, nil
		}
		_ = conn.Close()
	}
}

// admit returns the connection as Accept returns it, or nil.
func (l *Listener) admit(conn net.Conn) net.Conn {
	if caller, ok := conn.(Caller); ok {
		if g, err := l.grants.Find(caller.GrantID()); err == nil {
			if b, err := g.Bind(conn); err == nil {
				return b
			}
		}
	}
	select {
	case l.strangers <- struct{}{}:
		return &stranger{Conn: conn, left: sync.OnceFunc(func() { <-l.strangers })}
	default: // too many, or strangers is nil
		return nil
	}
}

// stranger is a connection without a grant.
type stranger struct {
	net.Conn
	left func()
}

// Grant implements Carrier: it returns nil, even if the connection itself carries one.
func (s *stranger) Grant() *Grant { return nil }

// Close implements net.Conn.
func (s *stranger) Close() error {
	defer s.left()
	return s.Conn.Close()
}
