package grant

import (
	"net"
	"sync"
)

// Caller is a connection of which the wire tells the grant that its other end
// was started under: "" if none, or none that could be found.
type Caller interface{ GrantID() string }

// MaxStrangers is how many connections without a grant a Listener hands over at
// the same time. More are closed at once, so that those who have none cannot use
// up the connections of those who have.
const MaxStrangers = 8

// Listener hands over connections together with their grants.
type Listener struct {
	net.Listener
	desk      *Desk
	strangers chan struct{} // nil: strangers are closed
}

// Listener puts the desk's grant on the connections of l, which must be Callers.
// Others, and those of callers that the open grant is not about, are closed at
// once; with strangers they are handed over without a grant, so that a server can
// tell them so.
func (d *Desk) Listener(l net.Listener, strangers bool) *Listener {
	listener := &Listener{Listener: l, desk: d}
	if strangers {
		listener.strangers = make(chan struct{}, MaxStrangers)
	}
	return listener
}

// Accept waits for the next connection. [Of] tells its grant.
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

// admit returns the connection as it is handed over, or nil.
func (l *Listener) admit(conn net.Conn) net.Conn {
	if caller, ok := conn.(Caller); ok {
		if g, err := l.desk.Find(caller.GrantID()); err == nil {
			if b, err := g.Bind(conn); err == nil {
				return b
			}
		}
	}
	select {
	case l.strangers <- struct{}{}:
		return &stranger{Conn: conn, left: sync.OnceFunc(func() { <-l.strangers })}
	default: // also when strangers are not wanted
		return nil
	}
}

// stranger is a connection without a grant.
type stranger struct {
	net.Conn
	left func()
}

// Grant implements Carrier: there is none, whatever the connection says.
func (s *stranger) Grant() *Grant { return nil }

// Close implements net.Conn.
func (s *stranger) Close() error {
	defer s.left()
	return s.Conn.Close()
}
