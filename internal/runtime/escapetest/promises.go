package escapetest

import (
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/verify"
)

// guestPath is where the guest's program is inside, which can also probe.
const guestPath = "/.atoll/guest"

// checkPromises verifies a sandbox as `atoll sandbox verify` does: what a probe
// finds inside, and the host outside, is all that the spec promises.
func checkPromises(a *arena) {
	c := a.start(func(s *sandbox.Spec) {
		s.Limits.Ulimits = []sandbox.Ulimit{{Name: "core", Soft: 0, Hard: 0}}
		if a.Limits {
			limited(s)
			s.Limits.CPUs = 0.5
		}
	})
	report, err := verify.Probe(a.t.Context(), c.machine, guestPath)
	if err != nil {
		a.t.Fatal(err)
	}
	info, err := c.machine.Info(a.t.Context())
	if err != nil {
		a.t.Fatal(err)
	}
	for _, check := range verify.Judge(&verify.Evidence{
		Spec: c.spec, Inside: report, Guest: verify.Guest{PID: info.PID, Dumpable: info.Dumpable},
		Host: verify.HostNamespaces(), Outside: verify.OutsideLimits(c.processOf()),
	}) {
		a.t.Logf("%-4s %-13s %-42s %s | %s", check.Status, check.Ring, check.Name, check.Promised, check.Found)
		if check.Status == verify.Gap {
			a.t.Errorf("%s: %s: promised %s, found %s", check.Ring, check.Name, check.Promised, check.Found)
		}
	}
}

// processOf is the guest's number on the host.
func (c *cell) processOf() int {
	c.t.Helper()
	conn, err := c.instance.Dial(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	defer conn.Close()
	return verify.PeerPID(conn)
}
