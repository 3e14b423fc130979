package run

import "net/netip"

// Public checks an address and port by the rule for external agents.
func Public(address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	return publicOnly(at.Addr())
}
