package service

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/atoll-run/atoll/internal/egress"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/model/grant"
)

// inside is a sandbox to the egress of one grant: only callers that were started under
// the grant are let in.
type inside struct {
	machine *machine.Machine
	grant   string
}

func (i *inside) options() *machine.PortOptions {
	return &machine.PortOptions{Grant: i.grant, WithGrant: true, Gate: func(_ context.Context, c machine.Caller) error {
		if c.Grant != i.grant {
			return fmt.Errorf("%w: it asked for port %d", grant.ErrStranger, c.Port)
		}
		return nil
	}}
}

// Listen implements egress.Inside.
func (i *inside) Listen(ctx context.Context, address netip.Addr, port int) (net.Listener, netip.Addr, error) {
	o := i.options()
	switch {
	case !address.IsValid():
		o.AnyAddress = true
	case address != netip.AddrFrom4([4]byte{127, 0, 0, 1}):
		o.Address = address
	}
	l, err := i.machine.Listen(ctx, port, o)
	if err != nil {
		return nil, netip.Addr{}, err
	}
	return listener{l}, l.Address(), nil
}

// ListenDatagrams implements egress.Inside.
func (i *inside) ListenDatagrams(ctx context.Context, port int) (egress.Datagrams, error) {
	c, err := i.machine.ListenDatagrams(ctx, port, i.options())
	if err != nil {
		return nil, err
	}
	return datagrams{c}, nil
}

// listener returns connections that have the command which they come from.
type listener struct{ net.Listener }

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return conn{c}, nil
}

// conn is a connection of a program inside.
type conn struct{ net.Conn }

// Exec returns the id of the command that the caller descends from, "" if it is unknown.
func (c conn) Exec() string {
	if caller, ok := c.Conn.(interface{ ExecID() string }); ok {
		return caller.ExecID()
	}
	return ""
}

// CloseWrite ends one direction.
func (c conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Lost reports whether the sandbox is gone, which is noticed otherwise only when bytes
// move.
func (c conn) Lost() bool {
	caller, ok := c.Conn.(interface{ Lost() bool })
	return ok && caller.Lost()
}

// Reset closes the connection so that the program sees it broken off.
func (c conn) Reset() {
	if caller, ok := c.Conn.(interface{ Reset() }); ok {
		caller.Reset()
		return
	}
	_ = c.Close()
}

// datagrams is a UDP port of the sandbox.
type datagrams struct{ *machine.DatagramConn }

// Receive implements egress.Datagrams.
func (d datagrams) Receive(ctx context.Context) (egress.Datagram, error) {
	got, err := d.DatagramConn.Receive(ctx)
	return egress.Datagram{From: got.From, Exec: got.Exec, Data: got.Data}, err
}

// Send implements egress.Datagrams.
func (d datagrams) Send(answer egress.Datagram) error {
	return d.DatagramConn.Send(machine.Datagram{From: answer.From, Data: answer.Data})
}
