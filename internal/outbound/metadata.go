package outbound

import (
	"context"
	"fmt"
	"net/netip"
	"syscall"
)

// ErrMetadata is the reason why an address of a metadata service is refused. It
// is an ErrNotPublic too.
var ErrMetadata = fmt.Errorf("%w: a cloud's metadata service gives out the credentials of this machine there", ErrNotPublic)

// metadata are the addresses at which clouds answer a machine with its own
// credentials. No setting opens them.
var metadata = prefixes(
	"169.254.169.0/24", "169.254.170.0/24", // EC2, GCE, Azure, Oracle, OpenStack; containers of ECS and EKS
	"168.63.129.16/32",   // the agent of Azure's machines
	"100.100.100.200/32", // Alibaba
	"192.0.0.192/32",     // Oracle
	"fd00:ec2::/32",      // EC2
	"fd20:ce::254/128",   // GCE
)

// NotMetadata is the rule that permits every address but those of metadata
// services.
func NotMetadata(a netip.Addr) error {
	if contains(metadata, embedded(a.Unmap().WithZone(""))) {
		return fmt.Errorf("address %v: %w", a, ErrMetadata)
	}
	return nil
}

// nat64 is the network whose addresses end in the IPv4 address that a
// translator of the network connects to.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// embedded returns the IPv4 address that a NAT64 address stands for; other
// addresses are returned as they are.
func embedded(a netip.Addr) netip.Addr {
	if !nat64.Contains(a) {
		return a
	}
	bytes := a.As16()
	return netip.AddrFrom4([4]byte(bytes[12:]))
}

// refuseMetadata is the ControlContext of dialers of package net: it checks the
// address that is about to be connected to.
func refuseMetadata(_ context.Context, _, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	return NotMetadata(to.Addr())
}
