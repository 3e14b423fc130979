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
