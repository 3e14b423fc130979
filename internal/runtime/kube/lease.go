package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-run/atoll/internal/config/kubekeys"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// The phases of a sandbox, in an annotation of its Lease.
const (
	phaseCreating = "creating" // a pod is being made
	phaseCreated  = "created"  // the pod runs, and the sandbox is not started
	phaseRunning  = "running"
	phaseEnding   = "ending"  // its copies are home, and a process of ours ends the pod
	phaseStopped  = "stopped" // it has no pod
)

// copied is a directory of the host of which the sandbox has a copy.
type copied struct {
	Source string `json:"source"`
	Target string `json:"target"`
	Keep   bool   `json:"keep"`           // what is changed inside is brought back
	File   bool   `json:"file,omitempty"` // Source is one file
	// Volume says that it is on a claim, which outlives the pod.
	Volume bool `json:"volume,omitempty"`
}

// newLease is the Lease of a sandbox that is about to be made.
func (r *Runtime) newLease(spec *sandbox.Spec, pod *corev1.Pod) (*coordinationv1.Lease, error) {
	now := time.Now()
	own := sandbox.Labels(spec, r.installation, now)
	own[noteNetwork] = networkOf(spec, &r.settings)
	labels, err := json.Marshal(own)
	if err != nil {
		return nil, err
	}
	template, err := json.Marshal(pod)
	if err != nil {
		return nil, err
	}
	copies, err := json.Marshal(copiesOf(spec, &r.settings))
	if err != nil {
		return nil, err
	}
	return &coordinationv1.Lease{
		TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
		ObjectMeta: metav1.ObjectMeta{Name: r.leaseName(spec.Name), Labels: r.labels(spec.Name), Annotations: map[string]string{
			noteName: spec.Name, noteLabels: string(labels), notePhase: phaseCreating, noteTemplate: string(template), noteCopies: string(copies), noteImage: spec.Image, noteNetwork: own[noteNetwork],
		}},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: new(holder()), AcquireTime: &metav1.MicroTime{Time: now}, LeaseTransitions: new(int32)},
	}, nil
}

// holder names this process, for people who look at the Lease.
func holder() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}

// advance updates the Lease with the resourceVersion that was read: of several processes
// that update it at once, one succeeds.
func (i *Instance) advance(ctx context.Context, change func(*coordinationv1.Lease)) error {
	c, err := i.runtime.cluster()
	if err != nil {
		return err
	}
	next := i.current().DeepCopy()
	change(next)
	if err := c.update(ctx, leases, next); err != nil {
		if apierrors.IsConflict(err) {
			return fmt.Errorf("another process changes it: %w: %w", err, sandbox.ErrBusy)
		}
		return err
	}
	i.remember(next, nil)
	return nil
}

// stateOf is where a sandbox is in its life. One whose pod ended by itself is dead: its
// files went with the pod, so that it has to be made and set up again.
func stateOf(lease *coordinationv1.Lease, pod *corev1.Pod) sandbox.State {
	alive := pod != nil && !isOver(pod)
	switch lease.Annotations[notePhase] {
	case phaseCreating:
		return sandbox.StateCreated
	case phaseCreated:
		if alive {
			return sandbox.StateCreated
		}
	case phaseRunning, phaseEnding:
		if alive {
			return sandbox.StateRunning
		}
	case phaseStopped:
		if rootIsKept(lease) {
			return sandbox.StateStopped
		}
	}
	return sandbox.StateDead
}

// rootIsKept reports whether a new pod of the Lease has what the last one had: not if its
// root could be changed.
func rootIsKept(lease *coordinationv1.Lease) bool {
	pod, err := podOf(lease)
	return err == nil && len(pod.Spec.Containers) == 1 && *pod.Spec.Containers[0].SecurityContext.ReadOnlyRootFilesystem
}

// podOf reads the template of a Lease.
func podOf(lease *coordinationv1.Lease) (*corev1.Pod, error) {
	pod := new(corev1.Pod)
	if err := json.Unmarshal([]byte(lease.Annotations[noteTemplate]), pod); err != nil {
		return nil, fmt.Errorf("the Lease's template: %w", err)
	}
	return pod, nil
}

// labelsOf are the labels that a Lease keeps; nil if they cannot be read.
func labelsOf(lease *coordinationv1.Lease) (labels map[string]string) {
	_ = json.Unmarshal([]byte(lease.Annotations[noteLabels]), &labels)
	return labels
}

func copiesIn(lease *coordinationv1.Lease) (copies []copied, err error) {
	if err := json.Unmarshal([]byte(lease.Annotations[noteCopies]), &copies); err != nil {
		return nil, fmt.Errorf("the Lease's copies: %w", err)
	}
	return copies, nil
}

func copiesOf(spec *sandbox.Spec, s *kubekeys.Settings) []copied {
	copies := []copied{}
	for _, m := range spec.Mounts {
		keep := !m.ReadOnly && spec.Kind != sandbox.KindPool
		copies = append(copies, copied{Source: m.Source, Target: m.Target, Keep: keep, File: isProgram(&m), Volume: onVolume(spec, &m, s)})
	}
	return copies
}

// summaryOf is what a Lease and its pod tell of a sandbox.
func summaryOf(lease *coordinationv1.Lease, pod *corev1.Pod) sandbox.Summary {
	s := sandbox.Summary{
		Name: lease.Annotations[noteName], ID: string(lease.UID), State: stateOf(lease, pod), Image: lease.Annotations[noteImage],
		CreatedAt: lease.CreationTimestamp.Time, Labels: labelsOf(lease), SavedAt: savedAt(lease), Problem: problemOf(lease, pod),
	}
	if pod != nil && len(pod.Status.ContainerStatuses) == 1 {
		s.ImageID = pod.Status.ContainerStatuses[0].ImageID
	}
	return s
}
