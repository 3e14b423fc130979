package egressstage

import (
	"context"
	"net"
	"net/netip"

	"github.com/atoll-run/atoll/internal/egress"
	"github.com/atoll-run/atoll/internal/machine"
)

// inside serves every caller of a sandbox.
type inside struct{ machine *machine.Machine }

func everyone() *machine.PortOptions {
	return &machine.PortOptions{Gate: func(context.Context, machine.Caller) error { return nil }}
}

// Listen implements egress.Inside.
func (i inside) Listen(ctx context.Context, a netip.Addr, port int) (net.Listener, netip.Addr, error) {
	o := everyone()
	o.AnyAddress = !a.IsValid()
	if a.IsValid() && a != netip.AddrFrom4([4]byte{127, 0, 0, 1}) {
		o.Address = a
	}
	l, err := i.machine.Listen(ctx, port, o)
	if err != nil {
		return nil, a, err
	}
	return l, l.Address(), nil
}

// ListenDatagrams implements egress.Inside.
func (i inside) ListenDatagrams(ctx context.Context, port int) (egress.Datagrams, error) {
	c, err := i.machine.ListenDatagrams(ctx, port, everyone())
	if err != nil {
		return nil, err
	}
	return datagrams{c}, nil
}

type datagrams struct{ *machine.DatagramConn }

// Receive implements egress.Datagrams.
func (d datagrams) Receive(ctx context.Context) (egress.Datagram, error) {
	got, err := d.DatagramConn.Receive(ctx)
	return egress.Datagram{From: got.From, Data: got.Data}, err
}

// Send implements egress.Datagrams.
func (d datagrams) Send(answer egress.Datagram) error {
	return d.DatagramConn.Send(machine.Datagram{From: answer.From, Data: answer.Data})
}
