package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// withVolumeReason adds to the error of a pod that no node takes why its claim has no
// volume.
func (i *Instance) withVolumeReason(ctx context.Context, err error) error {
	c, failed := i.runtime.cluster()
	if failed != nil || i.current().Annotations[noteVolume] == "" || !errors.Is(err, sandbox.ErrUnavailable) {
		return err
	}
	claim := new(corev1.PersistentVolumeClaim)
	if c.get(context.WithoutCancel(ctx), claims, i.runtime.leaseName(i.name), claim) != nil || claim.Status.Phase == corev1.ClaimBound {
		return err
	}
	return errhint.With(fmt.Errorf("its PersistentVolumeClaim has no volume: %s: %w", c.lastWord(context.WithoutCancel(ctx), claim), err),
		"set kubernetes.workspaceVolume.storageClass to a StorageClass that makes volumes (kubectl get storageclass), or remove kubernetes.workspaceVolume")
}

// lastWord is what the cluster said last about a claim.
func (c *cluster) lastWord(ctx context.Context, claim *corev1.PersistentVolumeClaim) string {
	found, err := list[corev1.Event](ctx, c, events, metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(claim.UID)})
	if err != nil || len(found) == 0 {
		return "it is " + string(claim.Status.Phase)
	}
	last := found[0]
	for _, event := range found {
		if event.LastTimestamp.After(last.LastTimestamp.Time) {
			last = event
		}
	}
	return last.Reason + ": " + short(last.Message)
}

// schedulingTimeout is how long a pod may wait for a node that takes it.
func schedulingTimeout(message string) time.Duration {
	if strings.Contains(message, "unbound") && strings.Contains(message, "PersistentVolumeClaim") {
		return volumeTimeout
	}
	return unschedulableTimeout
}
