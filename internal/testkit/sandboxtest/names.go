package sandboxtest

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// nameCases are about names in a sandbox without a network: a resolver and listeners on
// loopback addresses that the host serves.
var nameCases = []testCase{
	{"the resolver is the sandbox's own, and nothing answers", func(s *stage) {
		if !s.Walls {
			return // the files are the host's
		}
		m := s.wire(s.started(s.spec()))
		if got := s.sh(m, "cat /etc/resolv.conf"); !sameWords(got, sandbox.ResolvConf()) {
			s.t.Errorf("/etc/resolv.conf: %q", got)
		}
		if out, res := s.try(m, "getent hosts name.test"); res.ExitCode == 0 {
			s.t.Errorf("name.test is %s", out)
		}
	}},
	{"names lead to listeners of the host", func(s *stage) {
		if !s.Walls {
			return // port 53 is the host's
		}
		m := s.wire(s.started(s.spec()))
		names := s.serveNames(m, "")
		if got := s.sh(m, "getent hosts name.test"); !strings.HasPrefix(got, names.address.String()+" ") {
			s.t.Errorf("name.test is %q, want %v", got, names.address)
		}
		if got := s.sh(m, "curl -sS http://name.test/"); got != "hello from name.test" {
			s.t.Errorf("http://name.test/ answers %q", got)
		}
		if out, res := s.try(m, "getent hosts other.test"); res.ExitCode == 0 {
			s.t.Errorf("other.test is %s", out)
		}
	}},
	{"each grant has names of its own", func(s *stage) {
		if !s.Walls {
			return
		}
		m := s.wire(s.started(s.spec()))
		for _, grant := range []string{"a", "b"} {
			s.check(m.OpenGrant(s.t.Context(), grant, true))
			names := s.serveNames(m, grant)
			if got := s.granted(m, grant, "curl -sS http://name.test/"); got != "hello from name.test" {
				s.t.Errorf("grant %s: %q", grant, got)
			}
			if got := s.granted(m, grant, "getent hosts name.test"); !strings.HasPrefix(got, names.address.String()+" ") {
				s.t.Errorf("grant %s: name.test is %q, want %v", grant, got, names.address)
			}
		}
		if out, res := s.try(m, "timeout 2 getent hosts name.test"); res.ExitCode == 0 {
			s.t.Errorf("without a grant name.test is %s", out)
		}
	}},
}

// names is a resolver for one name and its listener.
type names struct {
	grant   string
	address netip.Addr
}

// serveNames answers name.test with an address on whose port 80 a greeting is served, to
// callers of one grant, or to all.
func (s *stage) serveNames(m *machine.Machine, grant string) *names {
	s.t.Helper()
	n := &names{grant: grant}
	l, err := m.Listen(s.t.Context(), 80, &machine.PortOptions{AnyAddress: true, Grant: grant, Gate: n.gate})
	s.check(err)
	n.address = l.Address()
	c, err := m.ListenDatagrams(s.t.Context(), 53, &machine.PortOptions{Grant: grant, Gate: n.gate})
	s.check(err)
	go n.greet(l)
	go n.answerAll(c)
	s.t.Cleanup(func() { s.check(errors.Join(c.Close(), l.Close())) })
	return n
}

func (n *names) gate(_ context.Context, c machine.Caller) error {
	if c.Grant != n.grant || n.grant != "" && c.Exec == "" {
		return errors.New("a caller of another grant")
	}
	return nil
}

// greet serves one answer a connection.
func (n *names) greet(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = conn.Read(make([]byte, 4096))
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 20\r\n\r\nhello from name.test")
		_ = conn.Close()
	}
}

// answerAll answers queries until the port is closed.
func (n *names) answerAll(c *machine.DatagramConn) {
	for {
		d, err := c.Receive(context.Background())
		if err != nil {
			return
		}
		if d.Data = n.answer(d.Data); d.Data != nil {
			_ = c.Send(d)
		}
	}
}

// answer returns the answer to a query: the address of name.test, no data for other types,
// no such name for others.
func (n *names) answer(query []byte) []byte {
	var message dnsmessage.Message
	if err := message.Unpack(query); err != nil || len(message.Questions) != 1 {
		return nil
	}
	q := message.Questions[0]
	answer := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: message.ID, Response: true, RecursionDesired: true, RecursionAvailable: true},
		Questions: message.Questions,
	}
	switch {
	case q.Name.String() != "name.test.":
		answer.RCode = dnsmessage.RCodeNameError
	case q.Type == dnsmessage.TypeA:
		answer.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 1},
			Body:   &dnsmessage.AResource{A: n.address.As4()},
		}}
	}
	packed, _ := answer.Pack()
	return packed
}

// sameWords reports whether two texts have the same words, in any order: a kubelet writes
// the options of resolvers in an order of its own.
func sameWords(a, b string) bool {
	return slices.Equal(slices.Sorted(strings.FieldsSeq(a)), slices.Sorted(strings.FieldsSeq(b)))
}
