package verify

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/atoll-run/atoll/internal/wire/findings"
)

// idleInterfaces come with every new network namespace on hosts that have the
// tunnels' modules. They lead nowhere.
var idleInterfaces = []string{"lo", "tunl0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0", "sit0", "ip6tnl0", "ip6gre0", "teql0"}

func judgeNetwork(e *Evidence) []Check {
	const ring = "network"
	net := e.Inside.Network
	reachable := reached(net)
	if e.Spec.Network != "none" {
		return []Check{note(ring, "network", e.Spec.Network, "interfaces "+listed(net.Interfaces)),
			note(ring, "ways out", "as the network allows, metadata services too", listed(reachable))}
	}
	extra := slices.DeleteFunc(slices.Clone(net.Interfaces), func(name string) bool { return slices.Contains(idleInterfaces, name) })
	return []Check{
		compare(ring, "interfaces", len(extra) == 0 && slices.Contains(net.Interfaces, "lo"), "only loopback", yesNo(len(extra) == 0, "only loopback", "also "+listed(extra))),
		compare(ring, "routes", len(net.Routes) == 0, "none", listed(net.Routes)),
		compare(ring, "metadata services, internet, name servers", len(reachable) == 0 && len(net.Reach) > 0, "no way to any", yesNo(len(reachable) == 0, "no way to any", "a way to "+listed(reachable))),
	}
}

// reached are addresses that there is a way to. A name server on loopback is
// the sandbox's own.
func reached(net findings.Network) (addresses []string) {
	for _, attempt := range net.Reach {
		address, err := netip.ParseAddr(attempt.Name)
		if attempt.Error == "" && (err != nil || !address.IsLoopback()) {
			addresses = append(addresses, attempt.Name)
		}
	}
	return addresses
}

func judgeProcesses(e *Evidence) []Check {
	const ring = "processes"
	var strange []string
	for _, p := range e.Inside.Processes {
		if p.Name == "kthreadd" || p.PID != 1 && p.Parent == 0 {
			strange = append(strange, fmt.Sprintf("%d %.20s", p.PID, p.Name))
		}
	}
	return []Check{
		compare(ring, "process 1", e.Guest.PID == 1, "the guest", yesNo(e.Guest.PID == 1, "the guest", fmt.Sprintf("the guest is %d", e.Guest.PID))),
		compare(ring, "processes of the host", len(strange) == 0 && len(e.Inside.Processes) > 0, "none to be seen", yesNo(len(strange) == 0, "none to be seen", listed(strange))),
	}
}

// judgeGuest looks at what a program can do to process 1.
func judgeGuest(e *Evidence) []Check {
	const ring = "guest"
	var open []string
	for _, attempt := range e.Inside.Guest {
		if attempt.Error == "" {
			open = append(open, attempt.Name)
		}
	}
	found := yesNo(len(open) == 0, "refused", "allowed: "+listed(open))
	return []Check{
		compare(ring, "tracing, memory, descriptors, limits", len(open) == 0 && len(e.Inside.Guest) > 0, "refused", found),
		compare(ring, "dumpable", !e.Guest.Dumpable, "no", yesNo(e.Guest.Dumpable, "yes", "no")),
	}
}
