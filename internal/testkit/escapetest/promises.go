package escapetest

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/verify"
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
	for _, check := range c.verify(c.spec) {
		a.t.Logf("%-4s %-13s %-42s %s | %s", check.Status, check.Ring, check.Name, check.Promised, check.Found)
		if check.Status == verify.Gap {
			a.t.Errorf("%s: %s: promised %s, found %s", check.Ring, check.Name, check.Promised, check.Found)
		}
	}
}

// verify compares the sandbox with any promise.
func (c *cell) verify(promise *sandbox.Spec) []verify.Check {
	c.t.Helper()
	checks, err := verify.Sandbox(c.t.Context(), c.machine, promise, guestPath, c.processOf())
	if err != nil {
		c.t.Fatal(err)
	}
	return checks
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

// allowAlmostAll is a profile with a single refusal; one without any is not taken.
const allowAlmostAll = `{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["acct"],"action":"SCMP_ACT_ERRNO"}]}`

// checkBrokenPromises leaves out of a real sandbox what was promised, and wants a
// gap for each: a verification that cannot fail would pass here too.
func checkBrokenPromises(a *arena) {
	a.write("profile.json", allowAlmostAll, 0o644)
	a.listen(a.path("engine.sock"))
	a.mkdir("workspace/some/where")
	a.listen(a.path("workspace/some/where/service.sock"))
	a.write("workspace/some/where/program", "", 0o777|os.ModeSetuid)
	promise := a.spec(func(s *sandbox.Spec) {
		s.User = "1234:1234"
		limited(s)
		s.Limits.CPUs = 0.5
	})
	c := a.start(func(s *sandbox.Spec) {
		s.SeccompProfile, s.ReadOnlyRoot, s.Tmpfs = a.path("profile.json"), false, nil
		s.Mounts[1].ReadOnly = false
		if a.Engine {
			s.CapDrop, s.Network = []string{"NET_RAW"}, "bridge"
		}
		for target, source := range map[string]string{"/more": a.path("readonly"), "/run/docker.sock": a.path("engine.sock"), "/disk": "/dev/kmsg"} {
			s.Mounts = append(s.Mounts, sandbox.Mount{Source: source, Target: target, ReadOnly: true, Kind: sandbox.MountBind})
		}
	})
	var got []string
	for _, check := range c.verify(promise) {
		a.t.Logf("%-4s %-13s %-42s %s | %s", check.Status, check.Ring, check.Name, check.Promised, check.Found)
		if check.Status == verify.Gap {
			got = append(got, check.Ring+": "+check.Name)
		}
	}
	want := []string{"user: user and group", "system calls: refused calls", "files: root", "files: writable places", "mounts: /agent", "mounts: /tmp", "mounts: others",
		"limits: processes", "limits: memory", "limits: processors", "limits: memory and swap", "limits: nofile", "limits: fsize",
		"devices: devices", "devices: engine and host sockets", "devices: sockets of the host below mounts", "mounts: set-user-ID programs of the host"}
	if a.Engine {
		want = append(want, "privileges: capabilities", "privileges: capabilities, seen from outside",
			"network: interfaces", "network: routes", "network: metadata address", "network: internet")
	}
	for _, gap := range want {
		if !slices.Contains(got, gap) {
			a.t.Errorf("%s is not among the gaps: %q", gap, got)
		}
	}
}

// checkLendingModes verifies a sandbox that cannot write to the host as if it
// could: its filter lets set-user-ID files be made, and that is noticed.
func checkLendingModes(a *arena) {
	c := a.start(func(s *sandbox.Spec) {
		for i := range s.Mounts {
			s.Mounts[i].ReadOnly = true
		}
	})
	const name = "set-user-ID and set-group-ID"
	for _, check := range c.verify(a.spec()) {
		if check.Name == name {
			a.t.Logf("%s: %s | %s", check.Status, check.Promised, check.Found)
			if check.Status != verify.Gap {
				a.t.Errorf("%s is no gap: %s", name, check.Found)
			}
			return
		}
	}
	a.t.Errorf("%s is not verified", name)
}

// killedProbe has everything beside an attacker end at once, the probe too. No
// answer is then given in its place.
func killedProbe(a *arena) {
	c := a.start()
	ctx, stop := context.WithCancel(a.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = c.machine.Exec(ctx, &machine.Command{Argv: []string{program, "end-others"}, Dir: workdir, Stdout: io.Discard, Stderr: io.Discard, EndTree: true})
	}()
	for deadline := time.Now().Add(patience); ; { // until the attacker runs
		checks, err := verify.Sandbox(ctx, c.machine, c.spec, guestPath, c.processOf())
		if err != nil {
			a.t.Log(err)
			break
		}
		if !verify.Holds(checks) || time.Now().After(deadline) {
			a.t.Errorf("a probe that was killed gave an answer: %v", checks)
			break
		}
	}
	if a.BridgeInside {
		c.wantBridgeKilled()
	}
	stop()
	<-done
	if !a.BridgeInside {
		c.alive()
	}
}

// wantBridgeKilled checks that the sandbox becomes broken, and says by what.
func (c *cell) wantBridgeKilled() {
	c.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		err := c.machine.Ping(c.t.Context())
		switch {
		case errors.Is(err, machine.ErrBroken) && strings.Contains(err.Error(), "bridge was killed"):
			c.t.Log(err)
			return
		case errors.Is(err, machine.ErrBroken) || time.Now().After(deadline):
			c.t.Errorf("the sandbox does not break with its reason: %v", err)
			return
		}
	}
}
