package egress

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/egress/clienthello"
	"github.com/atoll-run/atoll/internal/egress/hostname"
	"github.com/atoll-run/atoll/internal/egress/rule"
	"github.com/atoll-run/atoll/internal/outbound"
)

// refusedNames is the address of all names that the rules refuse. What listens
// there only says why.
var refusedNames = netip.AddrFrom4([4]byte{127, 77, 255, 1})

// portSSH is where programs connect to that say no name.
const portSSH = 22

// maxNoted is the most commands whose last refused name is kept.
const maxNoted = 256

// refusedAddress listens on refusedNames from the first refused name on.
type refusedAddress struct {
	server *Server

	mu        sync.Mutex
	closed    bool
	listeners []net.Listener
	last      map[string]string // by command: the name that it was refused last
}

// note keeps the name that a command was refused last.
func (r *refusedAddress) note(exec, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil || len(r.last) >= maxNoted {
		r.last = map[string]string{}
	}
	r.last[exec] = name
}

// noted returns the name that a command was refused last; "" if it is not known.
func (r *refusedAddress) noted(exec string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last[exec]
}

// address returns the address, with its ports open.
func (r *refusedAddress) address(ctx context.Context) (netip.Addr, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, port := range []int{80, 443, portSSH}[len(r.listeners):] {
		if r.closed {
			return netip.Addr{}, net.ErrClosed
		}
		l, _, err := r.server.o.Inside.Listen(ctx, refusedNames, port)
		if err != nil {
			return netip.Addr{}, err
		}
		r.listeners = append(r.listeners, l)
		r.server.tasks.Go(func() { r.server.accept(l, func(conn net.Conn) { r.server.refuseUnnamed(conn, port) }) })
	}
	return refusedNames, nil
}

func (r *refusedAddress) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for _, l := range r.listeners {
		_ = l.Close()
	}
}

// refuseUnnamed refuses a connection to the address of refused names. Which name
// it is for is known once its first message is read; of SSH it is taken to be the
// one that the command looked up last.
func (s *Server) refuseUnnamed(conn net.Conn, port int) {
	if port == portSSH {
		s.refuseSSH(conn)
		return
	}
	if conn.SetDeadline(time.Now().Add(s.o.helloTimeout)) != nil {
		return
	}
	text, first := readName(conn)
	if len(first) == 0 {
		return
	}
	name, err := hostname.Canonical(text)
	if err != nil {
		name = "" // it is not shown: it is no name
	}
	c := s.newConnection(conn, name, port)
	defer c.end()
	d := s.Policy().Connect(name, port)
	if d.Allow || d.Ask || name == "" {
		d = rule.Decision{Reason: "the name was refused when it was looked up", Hint: "look it up again"}
	}
	c.refuse(first, denied(d))
}

// refuseSSH records the refusal; SSH has no message for it.
func (s *Server) refuseSSH(conn net.Conn) {
	c := s.newConnection(conn, s.refused.noted(execOf(conn)), portSSH)
	defer c.end()
	if c.name != "" {
		c.record(denied(s.Policy().Connect(c.name, portSSH)))
	}
}

// readName returns the name in the first message of TLS or HTTP, and what it
// read.
func readName(conn net.Conn) (name string, first []byte) {
	name, first, err := clienthello.Read(conn)
	if !errors.Is(err, clienthello.ErrNotTLS) {
		return name, first
	}
	recorded := &recording{Reader: outbound.Prefixed(conn, first)}
	host, _ := readHead(recorded)
	host, _, _ = hostname.SplitPort(host)
	return host, recorded.read
}

// recording keeps what is read.
type recording struct {
	io.Reader
	read []byte
}

func (r *recording) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	r.read = append(r.read, b[:n]...)
	return n, err
}
