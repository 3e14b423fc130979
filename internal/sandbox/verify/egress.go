package verify

import (
	"slices"

	"github.com/atoll-run/atoll/internal/sandbox"
)

// minEgress is how many ways to a public name a probe tries.
const minEgress = 2

// checkEgress checks that names lead nowhere but to the host: the resolver is the
// sandbox's own, and a process without a grant gets no answer that leads outside. That
// there is no other way out is the ring network.
func checkEgress(e *Evidence) []Check {
	const ring = "egress"
	net := e.Inside.Network
	if e.Spec.Network != "none" {
		return []Check{note(ring, "resolver", "as the network has it", listed(net.Servers))}
	}
	want := e.Spec.DNS
	if len(want) == 0 {
		want = []string{sandbox.NameServer}
	}
	var open []string
	for _, attempt := range net.Egress {
		if attempt.Error == "" {
			open = append(open, attempt.Name)
		}
	}
	const nowhere = "leads nowhere"
	resolver := compare(ring, "resolver", slices.Equal(net.Servers, want), listed(want), listed(net.Servers))
	if resolver.Status == Gap {
		resolver.Remedy = "recreate a sandbox that was made by an earlier version: atoll sandbox recreate"
	}
	return []Check{
		resolver,
		compare(ring, "a public name without a grant", len(open) == 0 && len(net.Egress) >= minEgress, nowhere, yesNo(len(open) == 0, nowhere, "answered: "+listed(open))),
	}
}

// egress is whether a process without capabilities can serve names on their usual ports.
func (h host) egress() Check {
	return trait{"egress", "ports below 1024", "can be opened to a sandbox", "belong to root in every network namespace",
		"use Linux 4.11 or newer"}.needed(h.has("/proc/sys/net/ipv4/ip_unprivileged_port_start"))
}
