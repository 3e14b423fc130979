package kube

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/testkit/clustertest"
	"github.com/atoll-run/atoll/internal/testkit/escapetest"
)

const attackProgram = "/workspace/attack"

// attackSpec is a sandbox with the attack program in its workspace.
func attackSpec(t *testing.T, name, network string) *sandbox.Spec {
	t.Helper()
	spec := testSpec()
	spec.Name, spec.Image, spec.Network, spec.Limits, spec.Mounts[0].Source = name, testImage, network, sandbox.Limits{Memory: 256 << 20}, t.TempDir()
	if err := os.WriteFile(filepath.Join(spec.Mounts[0].Source, "attack"), escapetest.Attack(t), 0o755); err != nil {
		t.Fatal(err)
	}
	return spec
}

// TestEscapeToTheCluster: hostile code in a pod reaches neither the API server, the kubelet,
// the metadata address, other pods nor the node's network; it finds no token and no file of
// the node, does not get into the network that the pod has, and cannot pass for a host. In a
// pod that was given the cluster's network the same program reaches them.
func TestEscapeToTheCluster(t *testing.T) {
	r := testRuntime(t, clusterSettings(t))
	inside, m := started(t, r, attackSpec(t, "prey", "none"))
	open, other := started(t, r, attackSpec(t, "neighbour", "bridge"))
	listening(t, other)
	targets := clusterTargets(r, inside.currentPod(), open.currentPod())
	for name, attack := range map[string][]string{
		"addresses": append([]string{"reach"}, targets...), "links": {"links"}, "namespaces and roots of processes": {"enter"}, "node files": {"node-files"},
		"guest's program": {"guest-file", guestTarget}, "forged wire": {"forge-wire", socketTarget, guestTarget},
	} {
		t.Run(name, func(t *testing.T) {
			if out, code := attacked(t, m, attack...); code != 0 {
				t.Errorf("it ended with %d: 1 is a step that worked, 2 one that could not be tried\n%s", code, out)
			}
		})
	}
	t.Run("without walls", func(t *testing.T) {
		for _, target := range targets {
			if strings.HasPrefix(target, metadataAddress) {
				continue // nothing is there
			}
			if out, code := attacked(t, other, "reach", target); code != 1 {
				t.Errorf("a pod with a network does not reach %s either (%d)\n%s", target, code, out)
			}
		}
		if out, code := attacked(t, other, "enter"); code != 0 {
			t.Errorf("a pod with a network enters namespaces (%d)\n%s", code, out)
		}
		hostSays(t, r, inside.currentPod())
	})
	if out, code := attacked(t, m, "child"); code != 0 {
		t.Errorf("the guest does not serve any more\n%s", out)
	}
}

// metadataAddress is where clouds tell a machine its credentials.
const metadataAddress = "169.254.169.254"

// clusterTargets are addresses that a pod with the cluster's network has a way to.
func clusterTargets(r *Runtime, own, neighbour *corev1.Pod) []string {
	return []string{
		strings.TrimPrefix(r.known.config.Host, "https://"), "10.96.0.1:443", net.JoinHostPort(own.Status.HostIP, "10250"),
		net.JoinHostPort(neighbour.Status.PodIP, "8080"), net.JoinHostPort(metadataAddress, "80"),
	}
}

// started makes a sandbox run, and removes it at the end.
func started(t *testing.T, r *Runtime, spec *sandbox.Spec) (*Instance, *machine.Machine) {
	t.Helper()
	inst, err := r.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	removeAtEnd(t, inst)
	if err := inst.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	m := machine.New(inst.Dial, nil)
	t.Cleanup(func() { _ = m.Close() })
	return inst.(*Instance), m
}

// attacked runs the attack program, and returns what it printed and how it ended.
func attacked(t *testing.T, m *machine.Machine, args ...string) (string, int) {
	t.Helper()
	var out strings.Builder
	res, err := m.Exec(t.Context(), &machine.Command{Argv: append([]string{attackProgram}, args...), Stdout: &out, Stderr: &out, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), res.ExitCode
}

// listening has a pod listen on its port 8080.
func listening(t *testing.T, m *machine.Machine) {
	t.Helper()
	if _, err := m.Start(t.Context(), &machine.Command{Argv: []string{attackProgram, "serve", ":8080"}}); err != nil {
		t.Fatal(err)
	}
}

// hostSays checks that what the attack sends is answered where a host sends it.
func hostSays(t *testing.T, r *Runtime, pod *corev1.Pod) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "attack")
	if err := os.WriteFile(program, escapetest.Attack(t), 0o755); err != nil {
		t.Fatal(err)
	}
	hello, err := exec.CommandContext(t.Context(), program, "hello").Output()
	if err != nil {
		t.Fatal(err)
	}
	out, _ := clustertest.Shared(t).Try(t.Context(), string(hello), "-n", r.settings.Namespace, "exec", "-i", pod.Name, "-c", containerName, "--", guestTarget, "pass", "--socket", socketTarget)
	if !strings.Contains(out, `"boot"`) {
		t.Errorf("the hello of the attack is answered to nobody: %q", out)
	}
}
