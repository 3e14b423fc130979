package kube

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-run/atoll/internal/config/kubekeys"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/testkit/clustertest"
)

// onNode returns settings whose pods are on one node.
func onNode(s *kubekeys.Settings, node string) *kubekeys.Settings {
	bound := *s
	bound.NodeSelector = map[string]string{corev1.LabelHostname: node}
	return &bound
}

// gone waits until no pod of the runtime is there.
func gone(t *testing.T, r *Runtime, within time.Duration) {
	t.Helper()
	for deadline := time.Now().Add(within); ; time.Sleep(pollInterval) {
		left := podsOf(t, r)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("left after %v: pods %v", within, left)
		}
	}
}

// lostReason fails unless err says for good that the node is lost.
func lostReason(t *testing.T, err error, node string) {
	t.Helper()
	if !errors.Is(err, sandbox.ErrNotRunning) || !errors.Is(err, machine.ErrNodeLost) || !strings.Contains(err.Error(), "node "+node+" is not ready") {
		t.Errorf("a dial ends with %v", err)
	}
}

// TestKubeletKilled: a kubelet that is back after three seconds costs nothing. One that is
// not back makes the sandbox dead, with the reason; it is removed at once, and its processes
// end when the kubelet is back.
func TestKubeletKilled(t *testing.T) {
	c := clustertest.Alone(t, 2)
	r := testRuntime(t, onNode(clusterSettings(t), "node2"))
	inst, m := started(t, r, smallSpec("patient"))
	pod := inst.currentPod()
	result := underWay(t, m, 8*time.Second)
	c.Kill(t, "kubelet2")
	time.Sleep(3 * time.Second)
	c.Start(t, "kubelet2")
	answers(t, m, time.Minute)
	result()
	if state, err := inst.State(t.Context()); err != nil || state != sandbox.StateRunning || inst.currentPod().UID != pod.UID {
		t.Errorf("%v, %v, pod %v", state, err, inst.currentPod())
	}
	ended := make(chan error, 1)
	go func() {
		_, err := m.Exec(context.WithoutCancel(t.Context()), &machine.Command{Argv: []string{"sleep", "300"}})
		ended <- err
	}()
	c.Kill(t, "kubelet2")
	begin := time.Now()
	lostReason(t, dead(t, inst, 2*time.Minute), "node2")
	t.Logf("the sandbox is dead %.1f s after its kubelet", time.Since(begin).Seconds())
	if err := <-ended; !errors.Is(err, machine.ErrTransport) && !errors.Is(err, machine.ErrNodeLost) {
		t.Errorf("the command in it: %v", err)
	}
	removedAtOnce(t, r, inst)
	c.Start(t, "kubelet2")
	gone(t, r, time.Minute)
}

// removedAtOnce removes a sandbox on a lost node. Its pod is left to the cluster.
func removedAtOnce(t *testing.T, r *Runtime, i *Instance) {
	t.Helper()
	limited, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := i.Remove(limited); err != nil {
		t.Error(err)
	}
	if left, err := r.List(t.Context()); len(left) > 0 || err != nil {
		t.Errorf("left: %v, %v", left, err)
	}
	if pods := podsOf(t, r); len(pods) != 1 {
		t.Errorf("the pod of a lost node was removed by force: %v", pods)
	}
}

// TestNodePoweredOff: the pod of a node that does not come back is never removed by force. The
// name of its sandbox is free at once, for another on another node; the cluster removes the pod
// when an operator has said that the node is off.
func TestNodePoweredOff(t *testing.T) {
	c := clustertest.Alone(t, 2)
	s := clusterSettings(t)
	r := testRuntime(t, onNode(s, "node2"))
	inst, _ := started(t, r, smallSpec("same"))
	c.KillNode(t, "node2")
	lostReason(t, dead(t, inst, 2*time.Minute), "node2")
	removedAtOnce(t, r, inst)
	other := testRuntime(t, onNode(s, "node1"))
	again, m := started(t, other, smallSpec("same"))
	underWay(t, m, time.Second)()
	c.PutOutOfService(t, "node2")
	for deadline := time.Now().Add(time.Minute); len(podsOf(t, r)) > 1; time.Sleep(pollInterval) {
		if time.Now().After(deadline) {
			t.Fatalf("left: pods %v", podsOf(t, r))
		}
	}
	removedWhole(t, other, again)
}

// TestPodOfALostNode: the end of a pod on a lost node is not awaited, unless it may write to
// the volume of the next one.
func TestPodOfALostNode(t *testing.T) {
	status := func(ready, containers corev1.ConditionStatus) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "p", DeletionTimestamp: &metav1.Time{Time: time.Now()}}, Spec: corev1.PodSpec{NodeName: "node2"},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}, {Type: corev1.ContainersReady, Status: containers}}},
		}
	}
	lost := status(corev1.ConditionFalse, corev1.ConditionTrue)
	if !abandoned(lost) || heldVolume(lost) != nil {
		t.Error("the pod of a lost node is waited for")
	}
	for _, other := range []*corev1.Pod{status(corev1.ConditionTrue, corev1.ConditionTrue), status(corev1.ConditionFalse, corev1.ConditionFalse)} {
		if nodeLost(other) {
			t.Errorf("the node is called lost: %+v", other.Status)
		}
	}
	kept := lost.DeepCopy()
	kept.DeletionTimestamp = nil
	if abandoned(kept) {
		t.Error("a pod that may come back is abandoned")
	}
	lost.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "v"}}}}
	if err := heldVolume(lost); abandoned(lost) || !errors.Is(err, sandbox.ErrBusy) || !strings.Contains(errhint.Of(err), "out-of-service") {
		t.Errorf("the volume of a lost pod is free: %v", err)
	}
}

// TestStartsAreLimited: no more pods are made at once than the configuration says, and who gives
// up while it waits is told why.
func TestStartsAreLimited(t *testing.T) {
	s := testSettings()
	s.StartsAtOnce = 2
	r, err := New(Options{Settings: *s, Installation: "i"})
	if err != nil {
		t.Fatal(err)
	}
	first, err := r.startTurn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.startTurn(t.Context()); err != nil {
		t.Fatal(err)
	}
	limited, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := r.startTurn(limited); err == nil || !strings.Contains(err.Error(), "kubernetes.startsAtOnce") {
		t.Errorf("a third pod is made: %v", err)
	}
	first()
	if _, err := r.startTurn(t.Context()); err != nil {
		t.Error(err)
	}
}
