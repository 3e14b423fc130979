package kube

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestLostNodeIsNotWaitedFor: files of a pod on a node that does not answer are not awaited,
// and the list says what is lost with it.
func TestLostNodeIsNotWaitedFor(t *testing.T) {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		notePhase: phaseRunning, notePod: "p", noteCopies: `[{"source":"/s","target":"/w","keep":true}]`,
	}}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", DeletionTimestamp: &metav1.Time{Time: time.Now()}}, Spec: corev1.PodSpec{NodeName: "n"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	i := &Instance{lease: lease, pod: pod}
	if !i.hasCopies(pod) || strings.Contains(problemOf(lease, pod), "lost") {
		t.Errorf("of a node that answers: %v, %s", i.hasCopies(pod), problemOf(lease, pod))
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}, {Type: corev1.ContainersReady, Status: corev1.ConditionTrue}}
	if i.hasCopies(pod) || !strings.Contains(problemOf(lease, pod), "since it was made is lost") {
		t.Errorf("of a lost one: %v, %s", i.hasCopies(pod), problemOf(lease, pod))
	}
}
