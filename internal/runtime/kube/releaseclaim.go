package kube

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// releaseClaim deletes the claim of the sandbox, if it has one, and waits until it is gone,
// and with it every pod that the controller made for it, or until its pod is abandoned. A pod
// that was deleted before its claim would be made again.
func (i *Instance) releaseClaim(ctx context.Context, grace int64) error {
	lease := i.current()
	name, uid := lease.Annotations[noteClaim], types.UID(lease.Annotations[noteUID])
	if name == "" {
		return nil
	}
	c, err := i.runtime.cluster()
	if err != nil {
		return err
	}
	i.runtime.dropSession(string(uid))
	i.runtime.terminations.setOurs(uid)
	for {
		claim := new(sandboxClaim)
		err := c.get(ctx, sandboxClaims, name, claim)
		if errors.Is(err, sandbox.ErrNotFound) {
			return nil
		}
		left := false
		if err == nil {
			left, err = c.endClaim(ctx, claim, lease.Annotations[notePod], grace)
		}
		if left {
			return nil
		}
		if err == nil {
			err = pause(ctx, pollInterval)
		}
		if err != nil {
			return claimNotGone(name, err)
		}
	}
}

// endClaim deletes a claim, or hastens the end of the pod of one that is being deleted. It
// reports whether the pod is abandoned.
func (c *cluster) endClaim(ctx context.Context, claim *sandboxClaim, pod string, grace int64) (left bool, err error) {
	if claim.DeletionTimestamp != nil {
		return c.hastenEnd(ctx, pod, grace)
	}
	return false, c.removeClaimObject(ctx, claim)
}

func claimNotGone(name string, err error) error {
	return errhint.With(fmt.Errorf("SandboxClaim %s is not gone: %w", name, err),
		"look at its sandbox and its pod: kubectl describe sandboxclaim,sandbox,pod; the cluster's garbage collector removes them, up to a minute late when agent-sandbox was just installed")
}

// hastenEnd gives a pod that is being deleted less time, if it has more. It reports whether
// the pod is abandoned.
func (c *cluster) hastenEnd(ctx context.Context, name string, grace int64) (left bool, err error) {
	pod := new(corev1.Pod)
	err = c.get(ctx, pods, name, pod)
	switch {
	case errors.Is(err, sandbox.ErrNotFound):
		return false, nil
	case err != nil || pod.DeletionGracePeriodSeconds == nil:
		return false, err
	case abandoned(pod) || *pod.DeletionGracePeriodSeconds <= grace:
		return abandoned(pod), nil
	}
	return false, c.remove(ctx, pods, name, pod.UID, grace)
}

// removeClaimObject deletes a claim unless it changed since it was read. One that has a
// sandbox is there until the cluster's garbage collector has removed that and its pod.
func (c *cluster) removeClaimObject(ctx context.Context, claim *sandboxClaim) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	how := metav1.DeletePropagationBackground
	if claim.Status.Sandbox.Name != "" {
		how = metav1.DeletePropagationForeground
	}
	err := c.of(sandboxClaims).Delete(ctx, claim.Name, metav1.DeleteOptions{
		PropagationPolicy: &how, Preconditions: &metav1.Preconditions{UID: &claim.UID, ResourceVersion: &claim.ResourceVersion},
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return explain(err)
}
