package kube

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/testkit/clustertest"
)

// TestBombs: processes and memory without end stop at the limits of the pod, with the reason;
// the pod beside it and the node go on.
func TestBombs(t *testing.T) {
	c := clustertest.Shared(t)
	r := testRuntime(t, clusterSettings(t))
	_, beside := started(t, r, smallSpec("beside"))
	t.Run("processes", func(t *testing.T) {
		_, m := started(t, r, attackSpec(t, "forks", "none"))
		bombProcesses(t, m)
		answers(t, m, time.Minute)
	})
	t.Run("memory", func(t *testing.T) {
		inst, m := started(t, r, attackSpec(t, "memory", "none"))
		bombMemory(t, inst, m)
	})
	if res, err := beside.Exec(t.Context(), &machine.Command{Argv: []string{"true"}}); err != nil || res.ExitCode != 0 {
		t.Errorf("the pod beside: %+v, %v", res, err)
	}
	if out := c.Kubectl(t, "", "get", "nodes", "--no-headers"); strings.Contains(out, "NotReady") {
		t.Errorf("a node is lost:\n%s", out)
	}
}

// bombProcesses starts more processes than the kubelet lets a pod have (podPidsLimit of
// scripts/test-cluster.sh), and wants the next command to be told so.
func bombProcesses(t *testing.T, m *machine.Machine) {
	t.Helper()
	if out, code := attacked(t, m, "forks", "2"); code != 1 {
		t.Errorf("not even two processes can be started (%d)\n%s", code, out)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		const script = "for i in {1..600}; do sleep 60 & done; wait" // bash waits where it cannot fork
		_, _ = m.Exec(ctx, &machine.Command{Argv: []string{"bash", "-c", script}, EndTree: true})
	}()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(pollInterval) {
		_, err := m.Exec(t.Context(), &machine.Command{Argv: []string{"true"}})
		if errors.Is(err, machine.ErrExhausted) && strings.Contains(err.Error(), "room for another process") {
			break
		}
		if time.Now().After(deadline) {
			t.Errorf("nothing limits the processes of the pod: %v", err)
			break
		}
	}
	stop()
	<-ended
}

// bombMemory takes more memory than the pod has. The kernel kills the command, or, with
// control groups of version 2, the whole pod.
func bombMemory(t *testing.T, i *Instance, m *machine.Machine) {
	t.Helper()
	if out, code := attacked(t, m, "memory", "8"); code != 1 {
		t.Errorf("not even 8 MiB can be taken (%d)\n%s", code, out)
	}
	res, err := m.Exec(t.Context(), &machine.Command{Argv: []string{attackProgram, "memory", "1024"}, Timeout: time.Minute})
	switch {
	case err == nil && res.OOM:
		answers(t, m, time.Minute)
	case err == nil:
		t.Errorf("nothing stopped it: %+v", res)
	default:
		if why := dead(t, i, time.Minute); !errors.Is(why, sandbox.ErrNotRunning) || !strings.Contains(why.Error(), "OOMKilled") {
			t.Errorf("a dial ends with %v", why)
		}
	}
}

// TestQuotaKills: each time the workspace is over its quota all commands are killed, and the
// bridge that carries the wire is not: more kills than a wire may break in a minute leave the
// sandbox as it is.
func TestQuotaKills(t *testing.T) {
	const kills, fill = 12, "for i in 1 2 3 4 5 6 7 8; do head -c 2000000 /dev/zero >/workspace/f$i; done; sleep 60"
	r := testRuntime(t, clusterSettings(t))
	spec := smallSpec("overfull")
	spec.Mounts = []sandbox.Mount{{Source: t.TempDir(), Target: "/workspace", Kind: sandbox.MountWorkspace, Enclosed: true}}
	spec.Limits.Workspace = sandbox.WorkspaceQuota{Size: 4 << 20}
	inst, m := started(t, r, spec)
	answers(t, m, time.Minute)
	before := inst.liveSession()
	for n := range kills {
		res, err := m.Exec(t.Context(), &machine.Command{Argv: []string{"sh", "-c", fill}, Timeout: time.Minute})
		if err != nil || res.QuotaExceeded == "" {
			t.Fatalf("kill %d: %+v, %v", n, res, err)
		}
		if res, err := m.Exec(t.Context(), &machine.Command{Argv: []string{"sh", "-c", "rm /workspace/f*"}, Timeout: time.Minute}); err != nil || res.ExitCode != 0 {
			t.Fatalf("after kill %d: %+v, %v", n, res, err)
		}
	}
	if after := inst.liveSession(); after == nil || after != before {
		t.Errorf("the session was opened again: %p, %p", before, after)
	}
}
