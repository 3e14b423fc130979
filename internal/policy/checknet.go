package policy

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/lazyregexp"
)

var (
	networkName = lazyregexp.Word{First: "A-Za-z0-9", Rest: "A-Za-z0-9_.-"}
	hostName    = lazyregexp.New(`^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9])?$`)
)

const hintNetwork = `Use "none", "bridge" or the name of a network.`

// checkNetwork refuses every network that is not the sandbox's own.
func checkNetwork(docker config.Docker, _ Host) (found findings) {
	mode := strings.ToLower(trim(docker.Network))
	joined, joins := strings.CutPrefix(mode, "container:")
	switch {
	case mode == "":
	case mode == "host":
		found.add("network", hintNetwork, "network mode %q is blocked: the sandbox would share the network of the host", docker.Network)
	case joins && !docker.AllowNamespaceJoin:
		found.add("network",
			hintNetwork+" sandbox.docker.dangerouslyAllowContainerNamespaceJoin would allow it.",
			"network mode %q is blocked: the sandbox would join the namespace of another container", docker.Network)
	case joins && !networkName.MatchString(joined):
		found.add("network", "Write container:<name or id>.", "network mode %q names no container", docker.Network)
	case !joins && !networkName.MatchString(mode):
		found.add("network", hintNetwork, "network mode %q is not the name of a network", docker.Network)
	}
	return found
}

// checkDNS accepts addresses only: a name could not be looked up.
func checkDNS(docker config.Docker, _ Host) (found findings) {
	for i, server := range docker.DNS {
		if addr, err := netip.ParseAddr(server); err != nil || addr.Zone() != "" {
			found.add(fmt.Sprintf("dns[%d]", i), "Write an address such as 1.1.1.1.", "dns server %q is not an IP address", server)
		}
	}
	return found
}

// checkExtraHosts accepts "name:address", where the address may be host-gateway.
func checkExtraHosts(docker config.Docker, _ Host) (found findings) {
	for i, entry := range docker.ExtraHosts {
		name, address, _ := strings.Cut(entry, ":")
		_, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(address, "["), "]"))
		if !hostName.MatchString(name) || err != nil && address != "host-gateway" {
			found.add(fmt.Sprintf("extraHosts[%d]", i),
				"Write name:address, for example db.internal:10.0.0.5.", "extra host %q is not a name and an address", entry)
		}
	}
	return found
}
