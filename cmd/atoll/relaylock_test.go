//go:build linux

package main

import (
	"strings"
	"testing"
)

// TestOneLockForAllWaysToABranch: an agent on the host, a run, work in a container
// and whoever sends what was kept are processes of their own, and one at a time on
// a branch. Those that a process holds are waited for; one that was prepared in a
// container belongs to its run until the commits are taken.
//
// Seen to fail with a holdBranch that does not clear the branch.
func TestOneLockForAllWaysToABranch(t *testing.T) {
	d, s := newRelayDemo(t), newService(t)
	d.env = append(d.env, "DOCKER_HOST="+s.host)
	ctx := t.Context()
	var agent, prepare said
	agentEnds := d.start(ctx, &agent, "agent", "-m", "do it", "--run-id", "a1", "--branch", "gw")
	d.until("the agent works", func() bool { return len(d.asked) > 0 })
	prepareEnds := d.start(ctx, &prepare, "relay", "prepare", "--container", s.name, "--branch", "gw", "--run-id", "c1")
	d.until("the container waits", func() bool { return strings.Contains(prepare.String(), "waiting for branch sandbox/gw (1 before)") })
	if status := d.atoll(ctx, "relay", "status"); !strings.Contains(status, "at work") {
		t.Errorf("the status is\n%s", status)
	}
	close(d.open)
	agentEnds()
	prepareEnds()
	const busy = "run c1 works on sandbox/gw in container"
	d.refused(ctx, busy, "runs", "start", "-m", "do it", "--run-id", "r1", "--branch", "gw")
	d.refused(ctx, busy, "agent", "-m", "do it", "--run-id", "a2", "--work-item", "gw")
	d.refused(ctx, busy, "relay", "prepare", "--container", s.name, "--branch", "gw", "--run-id", "c2")
	if status := d.atoll(ctx, "relay", "status"); !strings.Contains(status, "in container "+s.name) {
		t.Errorf("the status is\n%s", status)
	}
	s.sh("echo 1 > /workspace/current/one; " + serviceCommit + "one")
	d.atoll(ctx, "relay", "take", "c1")
	d.atoll(ctx, "runs", "start", "-m", "do it", "--run-id", "r2", "--branch", "gw")
	if got := d.server.Git(t, "org/project", "log", "--reverse", "--format=%s", "main..sandbox/gw"); got != "Do the work\none\nDo the work" {
		t.Errorf("the branch has %s", got)
	}
	if pulls := d.hub.Pulls(); len(pulls) != 1 {
		t.Errorf("%+v", pulls)
	}
}
