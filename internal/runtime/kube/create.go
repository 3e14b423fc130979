package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// cleanupTimeout bounds what is done after a failure, when the caller's own time may be
// over.
const cleanupTimeout = 30 * time.Second

// Create makes the Lease of spec, which takes the name, and its pod, and waits until the
// pod runs: only the nodes can tell whether they have the image.
func (r *Runtime) Create(ctx context.Context, spec *sandbox.Spec) (sandbox.Instance, error) {
	i, err := r.create(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("sandbox %q: %w", spec.Name, err)
	}
	return i, nil
}

func (r *Runtime) create(ctx context.Context, spec *sandbox.Spec) (_ *Instance, err error) {
	if gaps := r.specGaps(spec); len(gaps) > 0 {
		return nil, errhint.With(fmt.Errorf("%s: %s: %w", gaps[0].Field, gaps[0].Reason, sandbox.ErrUnsupported), gaps[0].Remedy)
	}
	c, err := r.cluster()
	if err != nil {
		return nil, err
	}
	pod, from, err := r.sourceOf(ctx, c, spec)
	if err != nil {
		return nil, err
	}
	lease, err := r.newLease(spec, pod)
	if err != nil {
		return nil, err
	}
	end, err := r.startTurn(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	if err := c.create(ctx, leases, lease); err != nil {
		if apierrors.IsAlreadyExists(err) {
			return nil, sandbox.ErrExists
		}
		return nil, err
	}
	i := &Instance{runtime: r, name: spec.Name, lease: lease}
	if err := i.prepareVolume(ctx, spec); err != nil {
		return nil, errors.Join(err, i.removeLeaseNow(ctx))
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, i.removeNow(ctx))
		}
	}()
	if err := i.makePod(ctx, from); err != nil {
		return nil, i.withVolumeReason(ctx, err)
	}
	if from.pool != "" && spec.Kind != sandbox.KindPool {
		return i, i.giveName(ctx)
	}
	return i, nil
}

// source is where the pod of a sandbox comes from.
type source struct {
	pool      string // SandboxWarmPool that a claim takes it out of; "": it is made
	maxAgeSec int64  // of the sandbox; 0: it has none
}

// sourceOf returns where the pod of a new sandbox comes from, and what it is made of.
func (r *Runtime) sourceOf(ctx context.Context, c *cluster, spec *sandbox.Spec) (*corev1.Pod, *source, error) {
	pool, err := r.poolFor(ctx, c, spec)
	if err != nil {
		return nil, nil, err
	}
	if pool != nil {
		return pool.pod, &source{pool: pool.name, maxAgeSec: spec.MaxAgeSec}, nil
	}
	pod, err := template(spec, &r.settings)
	return pod, &source{}, err
}

// makePod gets the next pod of the sandbox and waits until it runs. The name of the pod, or
// of its SandboxClaim, is written to the Lease first, so that a crash leaves no pod that no
// Lease names.
func (i *Instance) makePod(ctx context.Context, from *source) error {
	c, err := i.runtime.cluster()
	if err != nil {
		return err
	}
	name, nonce := i.runtime.newPodName(i.name)
	if err := i.advance(ctx, func(l *coordinationv1.Lease) {
		for _, note := range []string{noteClaim, noteUID, noteMember, noteCause, noteContainer} {
			delete(l.Annotations, note)
		}
		if l.Annotations[notePhase], l.Annotations[notePod], l.Annotations[noteNonce] = phaseCreating, name, nonce; from.pool != "" {
			l.Annotations[noteClaim] = name
		}
		i.runtime.nextEpoch(l)
	}); err != nil {
		return err
	}
	i.runtime.keepEpoch(i.current())
	get := i.newPod
	if from.pool != "" {
		get = i.takePod
	}
	pod, err := get(ctx, c, name, from)
	if err != nil {
		return err
	}
	running, err := i.runtime.awaitRunning(ctx, c, pod)
	if err != nil {
		return err
	}
	i.remember(i.current(), running)
	return i.advance(ctx, func(l *coordinationv1.Lease) {
		l.Annotations[notePhase] = phaseCreated
		for _, status := range running.Status.ContainerStatuses {
			l.Annotations[noteContainer] = status.ContainerID
		}
	})
}

// newPod makes a pod of what the Lease has written.
func (i *Instance) newPod(ctx context.Context, c *cluster, name string, _ *source) (*corev1.Pod, error) {
	pod, err := podOf(i.current())
	if err != nil {
		return nil, err
	}
	i.nameObject(pod, name)
	i.nameVolume(pod)
	return pod, c.create(ctx, pods, pod)
}

// nameObject gives a pod its name and its owner: the cluster itself removes a pod whose
// Lease is gone.
func (i *Instance) nameObject(pod *corev1.Pod, name string) {
	lease := i.current()
	pod.ObjectMeta = metav1.ObjectMeta{
		Name: name, Labels: maps.Clone(lease.Labels), Annotations: map[string]string{noteName: i.name, noteNonce: lease.Annotations[noteNonce]},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Name: lease.Name, UID: lease.UID, Controller: new(true)}},
	}
}

// removeLeaseNow frees the name, in time of its own, of a sandbox that has no pod.
func (i *Instance) removeLeaseNow(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	return i.removeLease(ctx)
}

// removeNow removes in time of its own.
func (i *Instance) removeNow(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	return i.discard(ctx)
}
