package ports

import (
	"encoding/binary"
	"net/netip"

	"github.com/atoll-run/atoll/internal/wire"
)

// nameAddresses counts the listeners of all groups by their addresses.
type nameAddresses struct {
	listeners map[netip.Addr]int
	total     int
	last      uint16 // the low half of the address that was chosen last
}

func (n *nameAddresses) add(a netip.Addr) {
	n.listeners[a]++
	n.total++
}

func (n *nameAddresses) remove(a netip.Addr) {
	n.total--
	if n.listeners[a]--; n.listeners[a] == 0 {
		delete(n.listeners, a)
	}
}

// The addresses that the guest chooses from: 127.77.1.0 to 127.77.254.255.
const (
	firstName = 1 << 8
	lastName  = 255<<8 - 1
)

// free returns an address without listeners. It goes on from the last one, so that an
// address is not used again soon: programs keep the addresses of names for a while.
// There are more addresses than listeners.
func (n *nameAddresses) free() netip.Addr {
	for {
		if n.last++; n.last < firstName || n.last > lastName {
			n.last = firstName
		}
		low := binary.BigEndian.AppendUint16(nil, n.last)
		if a := netip.AddrFrom4([4]byte{127, 77, low[0], low[1]}); n.listeners[a] == 0 {
			return a
		}
	}
}

// nameEndpoint returns the endpoint of a group that a request names. Without an address
// it has only a port.
func nameEndpoint(p *wire.Port) (endpoint, error) {
	if p.Address == "" {
		return endpoint{port: p.Port}, nil
	}
	a, err := netip.ParseAddr(p.Address)
	if err != nil || !wire.NameAddresses.Contains(a) {
		return endpoint{}, wire.Fail(wire.CodeInvalid, "the address is not in "+wire.NameAddresses.String())
	}
	return endpoint{a, p.Port}, nil
}
