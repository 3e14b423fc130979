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

func checkNetwork(e *Evidence) []Check {
	const ring = "network"
	net := e.Inside.Network
	if e.Spec.Network != "none" {
		return []Check{note(ring, "network", e.Spec.Network, "interfaces "+listed(net.Interfaces)),
			note(ring, "ways out", "as the network allows, metadata services too", listed(reached(net, tried(net))))}
	}
	extra := slices.DeleteFunc(slices.Clone(net.Interfaces), func(name string) bool { return slices.Contains(idleInterfaces, name) })
	return []Check{
		compare(ring, "interfaces", len(extra) == 0 && slices.Contains(net.Interfaces, "lo"), "only loopback", yesNo(len(extra) == 0, "only loopback", "also "+listed(extra))),
		compare(ring, "routes", len(net.Routes) == 0, "none", listed(net.Routes)),
		checkReach(ring, "metadata address", net, findings.Metadata()),
		checkReach(ring, "internet", net, findings.Internet()),
		checkReach(ring, "DNS", net, net.Servers),
	}
}

// checkReach demands that each address was tried, in vain.
func checkReach(ring, name string, net findings.Network, addresses []string) Check {
	open := reached(net, addresses)
	return compare(ring, name, len(open) == 0, "no way to it", yesNo(len(open) == 0, "no way to it", "a way to "+listed(open)))
}

// reached are those of some addresses that there is a way to, or may be: what
// was not tried counts. A name server on loopback is the sandbox's own.
func reached(net findings.Network, addresses []string) (open []string) {
	for _, name := range addresses {
		address, err := netip.ParseAddr(name)
		refused := slices.ContainsFunc(net.Reach, func(a findings.Attempt) bool { return a.Name == name && a.Error != "" })
		if !refused && (err != nil || !address.IsLoopback()) {
			open = append(open, name)
		}
	}
	return open
}

func tried(net findings.Network) (addresses []string) {
	for _, attempt := range net.Reach {
		addresses = append(addresses, attempt.Name)
	}
	return addresses
}

func checkProcesses(e *Evidence) []Check {
	const ring = "processes"
	pid := e.Guest.PID
	if e.Outside.PID != 0 && e.Outside.PID != pid {
		pid = max(pid, e.Outside.PID) // who is not 1 for both is not process 1
	}
	strange, entered := foreign(e)
	self := e.Inside.Self
	holds := len(strange) == 0 && len(e.Inside.Processes) > 0 && self.InProc == self.PID
	checks := []Check{
		compare(ring, "process 1", pid == 1, "the guest", yesNo(pid == 1, "the guest", fmt.Sprintf("the guest is %d", pid))),
		compare(ring, "host pids", holds, "none to be seen", yesNo(holds, "none to be seen", "to be seen: "+listed(strange))),
	}
	if len(entered) > 0 {
		checks = append(checks, note(ring, "from outside", "whoever may use the engine", "came in through it: "+listed(entered)))
	}
	return checks
}

// foreign are processes that do not belong to the sandbox, and those that came in
// from outside: they have no parent here. Engines let such in; nobody else does.
func foreign(e *Evidence) (strange, entered []string) {
	for _, p := range e.Inside.Processes {
		name := fmt.Sprintf("%d %.20s", p.PID, p.Name)
		switch {
		case p.Name == "kthreadd":
			strange = append(strange, name)
		case p.PID != 1 && p.Parent == 0 && e.Spec.Backend == embedded:
			strange = append(strange, name)
		case p.PID != 1 && p.Parent == 0:
			entered = append(entered, name)
		}
	}
	return strange, entered
}

// checkGuest looks at what a program can do to process 1.
func checkGuest(e *Evidence) []Check {
	const ring = "guest"
	var open []string
	for _, attempt := range e.Inside.Guest {
		if attempt.Error == "" {
			open = append(open, attempt.Name)
		}
	}
	found := yesNo(len(open) == 0, "refused", "allowed: "+listed(open))
	return []Check{
		compare(ring, "tracing, memory, descriptors, limits, priority", len(open) == 0 && len(e.Inside.Guest) >= minGuest, "refused", found),
		compare(ring, "dumpable", !e.Guest.Dumpable, "no", yesNo(e.Guest.Dumpable, "yes", "no")),
		checkProbe(ring, e),
	}
}

// checkProbe checks that the probe's own answers can be believed: no other process
// could change them, and none of its lists is at its limit, where entries may be
// missing.
func checkProbe(ring string, e *Evidence) Check {
	const name, promised = "the probe's report", "whole, and nobody could change it"
	in := e.Inside
	longest := max(len(in.Mounts), len(in.Paths), len(in.Writable), len(in.Network.Interfaces), len(in.Network.Routes),
		len(in.Devices), len(in.Sockets), len(in.Self.Descriptors), len(in.Calls), len(in.Processes))
	switch {
	case in.Self.Dumpable:
		return compare(ring, name, false, promised, "others could trace the probe")
	case longest >= findings.MaxEntries:
		return compare(ring, name, false, promised, "more was found than a report can hold")
	}
	return compare(ring, name, in.Self.PID > 1, promised, yesNo(in.Self.PID > 1, "whole", "from no process"))
}
