package egress

import (
	"net"
	"time"

	"github.com/atoll-run/atoll/internal/egress/clienthello"
	"github.com/atoll-run/atoll/internal/egress/hostname"
	"github.com/atoll-run/atoll/internal/egress/splice"
)

// ServeByName serves the connections of a listener of this host until it is closed: each
// is for the name that its TLS begins with, on a port.
func (s *Server) ServeByName(l net.Listener, port int) {
	s.accept(l, func(client net.Conn) { s.serveByName(client, port) })
}

// serveByName finds out which name a connection is for. What is no TLS is closed.
func (s *Server) serveByName(client net.Conn, port int) {
	if err := client.SetReadDeadline(time.Now().Add(s.o.helloTimeout)); err != nil {
		return
	}
	asked, first, err := clienthello.Read(client)
	if err != nil {
		return
	}
	name, err := hostname.Canonical(asked)
	if err != nil || client.SetReadDeadline(time.Time{}) != nil {
		return
	}
	s.serveConnection(&replayed{Conn: client, first: first}, name, port)
}

// replayed is a connection of which some bytes were read already.
type replayed struct {
	net.Conn
	first []byte
}

// Read returns the bytes that were read first.
func (r *replayed) Read(p []byte) (int, error) {
	if len(r.first) == 0 {
		return r.Conn.Read(p)
	}
	n := copy(p, r.first)
	r.first = r.first[n:]
	return n, nil
}

// CloseWrite ends one direction.
func (r *replayed) CloseWrite() error {
	splice.CloseWrite(r.Conn)
	return nil
}
