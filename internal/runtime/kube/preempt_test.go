package kube

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/testkit/clustertest"
)

// TestPreempted: a sandbox that the scheduler takes away for a pod of a higher priority is at
// home, and says why it is dead.
func TestPreempted(t *testing.T) {
	c := clustertest.Alone(t, 1) // no other pods are to be preempted
	s := onNode(clusterSettings(t), "node1")
	processors := allocatable(t, c, "node1")
	s.PriorityClass = priorityClass(t, c, "low-"+s.Namespace, -10)
	r := testRuntime(t, s)
	spec, home := workspaceSpec(t, "preempted")
	spec.Limits.CPUs = 0.75 * processors
	inst, m := started(t, r, spec)
	shell(t, m, "echo changed >/workspace/file")
	c.Kubectl(t, wantingPod(s.Namespace, priorityClass(t, c, "high-"+s.Namespace, 10), 0.5*processors), "create", "-f", "-")
	t.Cleanup(func() { c.Remove(t, "pod/wanting", "--namespace="+s.Namespace) })
	awaitGone(t, r)
	if text, err := os.ReadFile(filepath.Join(home, "file")); string(text) != "changed\n" || err != nil {
		t.Errorf("at home: %q, %v", text, err)
	}
	if left, err := r.List(t.Context()); err != nil || len(left) != 1 || left[0].State != sandbox.StateDead || !strings.Contains(left[0].Problem, "PreemptionByScheduler") {
		t.Errorf("%+v, %v", left, err)
	}
	if _, err := inst.Dial(t.Context()); !errors.Is(err, sandbox.ErrNotRunning) {
		t.Errorf("a dial ends with %v", err)
	}
	removedWhole(t, r, inst)
}

// allocatable returns how many processors a node has for pods.
func allocatable(t *testing.T, c *clustertest.Cluster, node string) float64 {
	t.Helper()
	processors, err := resource.ParseQuantity(strings.TrimSpace(c.Kubectl(t, "", "get", "node", node, "-o", "jsonpath={.status.allocatable.cpu}")))
	if err != nil {
		t.Fatal(err)
	}
	return processors.AsApproximateFloat64()
}

// priorityClass makes a priority class, removes it at the end, and returns its name.
func priorityClass(t *testing.T, c *clustertest.Cluster, name string, value int) string {
	t.Helper()
	c.Kubectl(t, "", "create", "priorityclass", name, fmt.Sprintf("--value=%d", value))
	t.Cleanup(func() { c.Remove(t, "priorityclass", name) })
	return name
}

// wantingPod returns the manifest of a pod on node1 with a priority and so many processors.
func wantingPod(namespace, priority string, processors float64) string {
	return fmt.Sprintf(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "wanting", "namespace": %q}, "spec": {
		"priorityClassName": %q, "nodeSelector": {"kubernetes.io/hostname": "node1"}, "terminationGracePeriodSeconds": 0,
		"securityContext": {"runAsNonRoot": true, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
		"containers": [{"name": "c", "image": %q, "imagePullPolicy": "Never", "command": ["sleep", "600"],
			"securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
			"resources": {"requests": {"cpu": "%.2f"}}}]}}`, namespace, priority, testImage, processors)
}
