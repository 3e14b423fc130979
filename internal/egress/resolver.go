package egress

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/egress/dns"
	"github.com/atoll-run/atoll/internal/egress/hostname"
	"github.com/atoll-run/atoll/internal/egress/rule"
)

const (
	// maxQueries is the most questions that are answered at the same time.
	// Datagrams beyond it are dropped: programs ask again.
	maxQueries = 64
	// queryTimeout is how long the sandbox may take to listen on the address of a
	// name.
	queryTimeout = 10 * time.Second
	// streamIdle is how long a TCP connection to the resolver may wait for its
	// next question.
	streamIdle = 10 * time.Second
)

// answerDatagrams answers questions by UDP until the port is closed.
func (s *Server) answerDatagrams(port Datagrams) {
	for {
		d, err := port.Receive(s.ctx)
		if err != nil {
			return
		}
		select {
		case s.queries <- struct{}{}:
		default:
			continue
		}
		s.tasks.Go(func() {
			defer func() { <-s.queries }()
			if answer := s.answer(d.Data, d.Exec); answer != nil {
				_ = port.Send(Datagram{From: d.From, Data: answer}) // the program asks again if it does not come
			}
		})
	}
}

// answerStream answers questions on one TCP connection.
func (s *Server) answerStream(conn net.Conn) {
	defer context.AfterFunc(s.ctx, func() { _ = conn.Close() })()
	for {
		if conn.SetDeadline(time.Now().Add(streamIdle)) != nil {
			return
		}
		message, err := dns.ReadMessage(conn)
		if err != nil {
			return
		}
		if dns.WriteMessage(conn, s.answer(message, execOf(conn))) != nil {
			return
		}
	}
}

// answer returns the answer to one message of a command; nil is none.
func (s *Server) answer(message []byte, exec string) []byte {
	q, refusal, err := dns.Read(message)
	if err != nil {
		return refusal
	}
	name, err := hostname.Canonical(q.Name)
	switch {
	case q.IsPointer():
		return s.answerPointer(q)
	case err != nil:
		return q.NotFound()
	case !q.IsAddress():
		return q.NoData()
	case name == "localhost" || strings.HasSuffix(name, ".localhost"):
		return q.Address(loopback)
	}
	address, err := s.addressOf(name, exec)
	if err != nil {
		s.o.Logger.Warn("a name has no address in the sandbox", "name", name, "error", err)
		return q.Failure()
	}
	return q.Address(address)
}

func (s *Server) answerPointer(q *dns.Question) []byte {
	a, ok := q.ReverseAddress()
	if !ok {
		return q.NotFound()
	}
	if a == loopback {
		return q.Pointer("localhost")
	}
	if name, ok := s.names.nameOf(a); ok {
		return q.Pointer(name)
	}
	return q.NotFound()
}

// addressOf returns the address that stands for a name: one of its own if a rule
// allows a port of it, and that of all refused names otherwise.
func (s *Server) addressOf(name, exec string) (netip.Addr, error) {
	ctx, cancel := context.WithTimeout(s.ctx, queryTimeout)
	defer cancel()
	ports, denied := s.allowedPorts(name)
	if len(ports) > 0 {
		return s.names.resolve(ctx, name, ports)
	}
	if err := s.o.Audit(&audit.EgressEvent{
		Time: s.o.Now(), Subject: s.o.Subject, Sandbox: s.o.Sandbox, Exec: exec, Event: audit.EgressDenied, Name: name, Rule: denied.Rule, Reason: denied.Reason,
	}); err != nil {
		return netip.Addr{}, err
	}
	s.refused.note(exec, name)
	return s.refused.address(ctx)
}

// allowedPorts returns the ports of a name that the rules allow or would ask
// about, with 80 and 443 for the reason of a refusal as soon as there is one. If
// there is none, it returns why.
func (s *Server) allowedPorts(name string) (ports []int, denied rule.Decision) {
	policy := s.Policy()
	for _, port := range policy.Ports(name) {
		if d := policy.Connect(name, port); d.Allow || d.Ask {
			ports = append(ports, port)
		} else {
			denied = d
		}
	}
	if len(ports) == 0 {
		return nil, denied
	}
	for _, port := range []int{80, 443} {
		if !slices.Contains(ports, port) {
			ports = append(ports, port)
		}
	}
	return ports, denied
}
