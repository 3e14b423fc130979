package egress

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/egress/inspect"
	"github.com/atoll-run/atoll/internal/egress/rule"
	"github.com/atoll-run/atoll/internal/outbound"
)

// Inside is the sandbox as the server sees it: what the callers of one grant
// connect to and send.
type Inside interface {
	// Listen listens on a port of one loopback address. Without an address one of
	// 127.77.0.0/16 is chosen that nothing else has, and returned. Connections may
	// have a method Exec() string with the id of the command that the caller
	// descends from.
	Listen(ctx context.Context, address netip.Addr, port int) (net.Listener, netip.Addr, error)
	// ListenDatagrams listens on a UDP port of 127.0.0.1.
	ListenDatagrams(ctx context.Context, port int) (Datagrams, error)
}

// Datagrams is a UDP port of the sandbox.
type Datagrams interface {
	Receive(ctx context.Context) (Datagram, error)
	Send(Datagram) error
	Close() error
}

// Datagram is one message from a program, or to it.
type Datagram struct {
	From netip.AddrPort // of the program
	Exec string         // the command that the program descends from, "" if unknown
	Data []byte
}

// Inspector reads the requests of a connection and forwards those that are
// allowed. It returns when the connection is over, with an *inspect.Refusal if it
// was refused and the program has been answered.
type Inspector interface {
	// ServeTLS ends the TLS of the program, which begins with its ClientHello.
	ServeTLS(ctx context.Context, client net.Conn, t *inspect.Target) error
	// ServePlain serves a program that speaks HTTP without TLS.
	ServePlain(ctx context.Context, client net.Conn, t *inspect.Target) error
}

// Question is a connection that no rule decides, put to a person.
type Question struct {
	Name string
	Port int
	Exec string
	Hint string // the rule that would allow it
}

// Asker puts a question to a person and waits for the answer, for as long as the
// context lasts.
type Asker func(ctx context.Context, q Question) (allow bool, err error)

// Denial is a connection or a request that was refused.
type Denial struct {
	Name   string
	Port   int
	Reason string
	Hint   string
}

// Rules are what can change while a server is open, see [Server.SetRules].
type Rules struct {
	Policy  *rule.Policy
	Inspect Inspector // nil: what needs it is refused
}

// Options are the parts of a server.
type Options struct {
	Rules
	Inside   Inside
	Outbound *outbound.Host
	Network  outbound.Network // for direct connections; nil: the host's own
	// Audit writes a record. If it fails, what it is about does not happen.
	Audit   func(*audit.EgressEvent) error
	Subject audit.Subject
	Sandbox string
	Ask     Asker                            // nil: what needs it is refused
	Denied  func(exec string, denial Denial) // nil: not called
	Logger  *slog.Logger                     // nil discards
	Now     func() time.Time                 // nil is the clock

	helloTimeout time.Duration // how long a program may take to send its first message
}

const defaultHelloTimeout = 10 * time.Second

func (o *Options) fill() error {
	if o.Policy == nil || o.Inside == nil || o.Outbound == nil || o.Audit == nil {
		return errors.New("egress: a server needs a policy, a sandbox, the host's network and an audit log")
	}
	if o.Denied == nil {
		o.Denied = func(string, Denial) {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.helloTimeout = cmp.Or(o.helloTimeout, defaultHelloTimeout)
	if o.Now == nil {
		o.Now = time.Now
	}
	return nil
}
