package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-run/atoll/internal/config/kubekeys"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// With kubernetes.workspaceVolume the workspace of a sandbox is on a PersistentVolumeClaim
// of the sandbox's name, which outlives the pod and the Lease. It is filled once, from the
// private copy of the host, and removed when that copy is removed for good.

// volumeName is the name of the volume in the pod.
const volumeName = "workspace"

// Whether the claim of a Lease was filled. One that was not goes with the Lease.
const (
	volumeNew    = "new"
	volumeFilled = "filled"
)

// volumeTimeout is how long a claim may take to be bound: what makes volumes may need a
// while.
const volumeTimeout = 15 * time.Second

// onVolume reports whether a mount of a spec is on a PersistentVolumeClaim. Temporary
// sandboxes and those that wait in a pool have none.
func onVolume(spec *sandbox.Spec, m *sandbox.Mount, s *kubekeys.Settings) bool {
	return s.WorkspaceVolume != nil && m.Kind == sandbox.MountWorkspace && !m.ReadOnly && spec.Kind != sandbox.KindPool && !spec.Temporary
}

// claimVolume is the volume of a claim, without its name.
func claimVolume() corev1.Volume {
	return corev1.Volume{Name: volumeName, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}}
}

// hasVolume reports whether a pod has a claim.
func hasVolume(pod *corev1.Pod) bool {
	for n := range pod.Spec.Volumes {
		if pod.Spec.Volumes[n].PersistentVolumeClaim != nil {
			return true
		}
	}
	return false
}

// nameVolume puts the name of the sandbox's claim into its pod.
func (i *Instance) nameVolume(pod *corev1.Pod) {
	for n := range pod.Spec.Volumes {
		if claim := pod.Spec.Volumes[n].PersistentVolumeClaim; claim != nil {
			claim.ClaimName = i.runtime.leaseName(i.name)
		}
	}
}

// prepareVolume makes the claim of a sandbox unless there is one. The caller holds
// the Lease, which keeps other processes from making one. It waits until no pod of the name is left: a claim has one pod at a
// time.
func (i *Instance) prepareVolume(ctx context.Context, spec *sandbox.Spec) error {
	wanted, err := i.runtime.claimOf(spec)
	if wanted == nil || err != nil {
		return err
	}
	c, err := i.runtime.cluster()
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, i.runtime.startTimeout())
	defer cancel()
	if err := i.runtime.endPods(limited, i.name, 0); err != nil {
		return fmt.Errorf("an earlier pod has its volume: %w: %w", err, sandbox.ErrBusy)
	}
	known, err := i.runtime.readClaim(limited, c, i.name)
	if err != nil || known != nil {
		return errors.Join(err, i.setVolume(ctx, volumeFilled))
	}
	if err := i.setVolume(ctx, volumeNew); err != nil {
		return err
	}
	return c.create(ctx, claims, wanted)
}

func (i *Instance) setVolume(ctx context.Context, what string) error {
	return i.advance(ctx, func(l *coordinationv1.Lease) { l.Annotations[noteVolume] = what })
}

// setFilled notes that a claim has what was sent.
func setFilled(l *coordinationv1.Lease) {
	if l.Annotations[noteVolume] == volumeNew {
		l.Annotations[noteVolume] = volumeFilled
	}
}

// claimOf is the claim of a spec; nil if it has none.
func (r *Runtime) claimOf(spec *sandbox.Spec) (*corev1.PersistentVolumeClaim, error) {
	for n := range spec.Mounts {
		if onVolume(spec, &spec.Mounts[n], &r.settings) {
			return r.newClaim(spec.Name, spec.Mounts[n].Source)
		}
	}
	return nil, nil
}

func (r *Runtime) newClaim(name, source string) (*corev1.PersistentVolumeClaim, error) {
	size, err := resource.ParseQuantity(r.settings.WorkspaceVolume.Size)
	if err != nil {
		return nil, fmt.Errorf("kubernetes.workspaceVolume.size %q: %w", r.settings.WorkspaceVolume.Size, err)
	}
	claim := &corev1.PersistentVolumeClaim{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Name: r.leaseName(name), Labels: r.labels(name), Annotations: map[string]string{
			noteName: name, noteSource: source,
		}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: size}},
		},
	}
	if class := r.settings.WorkspaceVolume.StorageClass; class != "" {
		claim.Spec.StorageClassName = &class
	}
	return claim, nil
}

// readClaim returns the claim of a name; nil if there is none. It waits for the end of one
// that is being deleted.
func (r *Runtime) readClaim(ctx context.Context, c *cluster, name string) (*corev1.PersistentVolumeClaim, error) {
	for {
		claim := new(corev1.PersistentVolumeClaim)
		err := c.get(ctx, claims, r.leaseName(name), claim)
		switch {
		case errors.Is(err, sandbox.ErrNotFound):
			return nil, nil
		case err != nil:
			return nil, err
		case claim.Labels[labelInstallation] != digest(r.installation) || claim.Annotations[noteName] != name:
			return nil, fmt.Errorf("PersistentVolumeClaim %s: %w", claim.Name, sandbox.ErrForeign)
		case claim.DeletionTimestamp == nil:
			return claim, nil
		}
		if err := pause(ctx, pollInterval); err != nil {
			return nil, errhint.With(fmt.Errorf("PersistentVolumeClaim %s is not gone: %w: %w", claim.Name, err, sandbox.ErrBusy), "look at what holds it: kubectl describe pvc "+claim.Name)
		}
	}
}

// discardVolume removes the claim of a sandbox that never was filled.
func (i *Instance) discardVolume(ctx context.Context, c *cluster) error {
	if i.current().Annotations[noteVolume] != volumeNew {
		return nil
	}
	claim, err := i.runtime.readClaim(ctx, c, i.name)
	if claim == nil || err != nil {
		return err
	}
	return i.runtime.removeClaim(ctx, c, claim)
}

// removeClaim removes a claim, and returns when it is gone.
func (r *Runtime) removeClaim(ctx context.Context, c *cluster, claim *corev1.PersistentVolumeClaim) error {
	if err := c.remove(ctx, claims, claim.Name, claim.UID, 0); err != nil {
		return err
	}
	_, err := r.readClaim(ctx, c, claim.Annotations[noteName])
	return err
}
