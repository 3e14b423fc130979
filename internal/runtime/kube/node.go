package kube

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// nodeLost reports whether the node of a pod does not answer any more. The cluster calls the
// pod not ready then, while its containers stay as the kubelet has last reported them; a
// kubelet itself reports both alike. The gateway needs no rights on nodes for this.
func nodeLost(pod *corev1.Pod) bool {
	return pod.Spec.NodeName != "" && len(pod.Spec.ReadinessGates) == 0 &&
		has(pod, corev1.PodReady, corev1.ConditionFalse) && has(pod, corev1.ContainersReady, corev1.ConditionTrue)
}

func has(pod *corev1.Pod, kind corev1.PodConditionType, status corev1.ConditionStatus) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind && c.Status == status })
}

// lostNode returns the error of a pod whose node does not answer.
func lostNode(pod *corev1.Pod) error {
	return fmt.Errorf("%w: node %s is not ready", machine.ErrNodeLost, pod.Spec.NodeName)
}

// abandoned reports whether another pod of the sandbox may be made before this one has
// ended: it is being deleted, its node is lost, and it shares no volume with the other. The
// cluster removes the object when the node is back, is deleted, or has the taint
// out-of-service. The gateway never deletes it by force, which could hide a running pod.
func abandoned(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil && nodeLost(pod) && !hasVolume(pod)
}

// unstartedTimeout is how long the end of a pod is awaited that never ran.
const unstartedTimeout = 2 * time.Second

// unstarted reports whether another pod of the sandbox may be made before this one has
// ended because it is being deleted and its container never ran: a kubelet keeps the pod
// until the pull of an image has ended, and starts nothing in it any more that lasts.
func unstarted(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil && pod.Status.Phase == corev1.PodPending && !hasVolume(pod)
}

// heldVolume returns the error of a pod on a lost node that may still write to its volume;
// nil for any other.
func heldVolume(pod *corev1.Pod) error {
	if pod.DeletionTimestamp == nil || !nodeLost(pod) || !hasVolume(pod) {
		return nil
	}
	return errhint.With(fmt.Errorf("pod %s may still write to its volume: %w: %w", pod.Name, lostNode(pod), sandbox.ErrBusy),
		"once the node is off, delete it (kubectl delete node), or taint it: kubectl taint node "+pod.Spec.NodeName+" node.kubernetes.io/out-of-service=nodeshutdown:NoExecute")
}
