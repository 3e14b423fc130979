package outbound

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/atoll-run/atoll/internal/errhint"
)

// ErrNotPublic is the reason why Public refuses an address.
var ErrNotPublic = errors.New("is not on the public internet")

// Rule returns an error for an address that may not be connected to. A nil Rule
// permits every address.
type Rule func(netip.Addr) error

// Public returns the rule that permits addresses of the public internet, and
// those of the given networks. Addresses of metadata services are refused even
// if a network holds them.
func Public(also ...netip.Prefix) Rule {
	return func(a netip.Addr) error {
		plain := a.Unmap()
		if err := NotMetadata(plain); err != nil {
			return err
		}
		if IsPublic(plain) || contains(also, plain) {
			return nil
		}
		return notPublic(a)
	}
}

// fakeIPs is the network that proxies such as Clash and Surge take addresses
// from which stand for a name on this host only.
var fakeIPs = netip.MustParsePrefix("198.18.0.0/15")

// notPublic returns the error for an address, with a hint where the cause is
// known.
func notPublic(a netip.Addr) error {
	err := fmt.Errorf("address %v: %w", a, ErrNotPublic)
	if fakeIPs.Contains(a.Unmap()) {
		return errhint.With(err, "a program on this host (Clash, Surge and the like) answers names with addresses of "+
			fakeIPs.String()+" and resolves them itself, so the real address cannot be checked; name that network as a private one to permit it")
	}
	return err
}

// reserved are networks that no server of the public internet is in: those for
// special purposes, and addresses that clouds answer only from inside.
var reserved = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
	"192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"168.63.129.16/32", // the agent of Azure's machines
	"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
)

// publicV6 is the part of IPv6 that is routed on the internet.
var publicV6 = netip.MustParsePrefix("2000::/3")

func prefixes(texts ...string) (list []netip.Prefix) {
	for _, text := range texts {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}

// IsPublic reports whether an address is one of the public internet. Forms that
// wrap an IPv4 address into an IPv6 one are outside of publicV6 or reserved.
func IsPublic(a netip.Addr) bool {
	a = a.Unmap()
	if !a.IsValid() || a.Zone() != "" || a.Is6() && !publicV6.Contains(a) {
		return false
	}
	return !contains(reserved, a)
}

func contains(list []netip.Prefix, a netip.Addr) bool {
	for _, p := range list {
		if p.Contains(a) {
			return true
		}
	}
	return false
}
