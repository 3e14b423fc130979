package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
)

var _ sandbox.PoolMember = (*Instance)(nil)

const (
	// claimAnswerTimeout is how long agent-sandbox's controller may say nothing of a claim.
	claimAnswerTimeout = 10 * time.Second
	// maxMarks is how often a pod that others change meanwhile is read again.
	maxMarks = 5
)

// sandboxClaim is what of a SandboxClaim is used.
type sandboxClaim struct {
	metav1.ObjectMeta `json:"metadata"`

	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
		Sandbox    struct {
			Name string `json:"name"`
		} `json:"sandbox"`
	} `json:"status"`
}

// comesByClaim reports whether the pod of a sandbox of spec comes by a SandboxClaim where
// there is a pool for it.
func (r *Runtime) comesByClaim(spec *sandbox.Spec) bool {
	return r.usesAgentSandbox() && sandbox.Unpoolable(shapedSpec(spec)) == "" && r.Unpoolable(spec) == ""
}

// poolFor returns the pool that has pods for spec; nil if there is none.
func (r *Runtime) poolFor(ctx context.Context, c *cluster, spec *sandbox.Spec) (*podPool, error) {
	if !r.comesByClaim(spec) {
		return nil, nil
	}
	if err := r.checkProvider(ctx, c); err != nil {
		return nil, err
	}
	p, err := r.poolOf(spec)
	if err != nil {
		return nil, err
	}
	err = c.get(ctx, sandboxWarmPools, p.name, new(warmPool))
	if errors.Is(err, sandbox.ErrNotFound) {
		return nil, nil
	}
	return p, err
}

// takePod gets a pod by a claim of that name, and writes into the Lease which one it is.
func (i *Instance) takePod(ctx context.Context, c *cluster, name string, from *source) (*corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, i.runtime.startTimeout())
	defer cancel()
	if err := c.createObject(ctx, sandboxClaims, i.claimObject(name, from)); err != nil {
		return nil, fmt.Errorf("SandboxClaim: %w", err)
	}
	claim, err := c.awaitClaim(ctx, name)
	if err != nil {
		return nil, err
	}
	pod, err := i.markPod(ctx, c, claim.Status.Sandbox.Name)
	if err != nil {
		return nil, err
	}
	return pod, i.advance(ctx, func(l *coordinationv1.Lease) {
		l.Annotations[notePod], l.Annotations[noteUID] = pod.Name, string(pod.UID)
		if pod.CreationTimestamp.Before(&claim.CreationTimestamp) {
			l.Annotations[noteMember] = pod.Name
		}
	})
}

// claimObject is the SandboxClaim of the Lease. The cluster removes it with the Lease.
func (i *Instance) claimObject(name string, from *source) map[string]any {
	lease := i.current()
	lifecycle := map[string]any{"shutdownPolicy": "Delete"}
	if from.maxAgeSec > 0 {
		lifecycle["shutdownTime"] = time.Now().Add(time.Duration(from.maxAgeSec+deadlineAfter) * time.Second).UTC().Format(time.RFC3339)
	}
	labels := map[string]any{}
	for key, value := range lease.Labels {
		labels[key] = value
	}
	return map[string]any{
		"apiVersion": sandboxClaims.GroupVersion().String(), "kind": "SandboxClaim",
		"metadata": map[string]any{"name": name, "labels": labels, "ownerReferences": []any{map[string]any{
			"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "name": lease.Name, "uid": string(lease.UID),
		}}},
		"spec": map[string]any{"warmPoolRef": map[string]any{"name": from.pool}, "lifecycle": lifecycle},
	}
}

// awaitClaim waits until a claim has its sandbox, whose name is that of the pod.
func (c *cluster) awaitClaim(ctx context.Context, name string) (*sandboxClaim, error) {
	for began := time.Now(); ; {
		claim := new(sandboxClaim)
		err := c.get(ctx, sandboxClaims, name, claim)
		switch {
		case err == nil && claim.Status.Sandbox.Name != "":
			return claim, nil
		case err == nil && len(claim.Status.Conditions) == 0 && time.Since(began) > claimAnswerTimeout:
			return nil, claimIgnored(name)
		case err == nil:
			err = c.awaitChange(ctx, sandboxClaims, name, claim.ResourceVersion)
		}
		if ctx.Err() != nil {
			return nil, claimUnmet(claim, ctx.Err())
		}
		if err != nil {
			return nil, err
		}
	}
}

func claimIgnored(name string) error {
	return errhint.With(fmt.Errorf("SandboxClaim %s: the controller of agent-sandbox says nothing of it: %w", name, sandbox.ErrUnavailable),
		"check that it runs, with --extensions: kubectl -n agent-sandbox-system get pods; or set kubernetes.provider to pods")
}

// claimUnmet explains a claim that has no sandbox in time.
func claimUnmet(claim *sandboxClaim, err error) error {
	reason := "the controller of agent-sandbox gives no reason"
	for _, condition := range claim.Status.Conditions {
		if condition.Status == metav1.ConditionFalse {
			reason = condition.Reason + ": " + short(condition.Message)
		}
	}
	return errhint.With(fmt.Errorf("SandboxClaim %s has no sandbox: %s: %w: %w", claim.Name, reason, err, sandbox.ErrUnavailable),
		"look at it: kubectl describe sandboxclaim,sandbox in the namespace, and the log of agent-sandbox's controller")
}

// markPod writes the sandbox's labels to a pod that a claim has, unless it is that of
// another sandbox already. The claim may have it before it is made.
func (i *Instance) markPod(ctx context.Context, c *cluster, name string) (*corev1.Pod, error) {
	for conflicts := 0; ; {
		pod := new(corev1.Pod)
		err := c.get(ctx, pods, name, pod)
		if err == nil {
			if owner := pod.Labels[labelSandbox]; owner != "" {
				return nil, fmt.Errorf("pod %s is that of another sandbox: %w", name, sandbox.ErrBusy)
			}
			err = c.patch(ctx, pods, name, i.marks(pod))
		}
		switch {
		case err == nil:
			return pod, nil
		case apierrors.IsConflict(err) && conflicts < maxMarks:
			conflicts++
		case errors.Is(err, sandbox.ErrNotFound):
			if err := pause(ctx, pollInterval); err != nil {
				return nil, errhint.With(fmt.Errorf("agent-sandbox made no pod %s: %w: %w", name, err, sandbox.ErrUnavailable), "look at it: kubectl describe sandbox "+name)
			}
		default:
			return nil, err
		}
	}
}

// marks is the patch that makes a pod the sandbox's, with the resourceVersion that was read:
// it fails if the pod has changed since.
func (i *Instance) marks(pod *corev1.Pod) map[string]any {
	lease := i.current()
	return map[string]any{"metadata": map[string]any{
		"resourceVersion": pod.ResourceVersion, "labels": lease.Labels,
		"annotations": map[string]string{noteName: i.name, noteNonce: lease.Annotations[noteNonce]},
	}}
}

// Member returns the name of the pod that waited in a pool before it was the sandbox's.
func (i *Instance) Member() string { return i.current().Annotations[noteMember] }

// giveName tells the guest of a pod that waited whose sandbox it is. It accepts that once.
func (i *Instance) giveName(ctx context.Context) error {
	m := machine.New(i.Dial, &machine.Options{Log: i.runtime.logger})
	defer m.Close()
	limited, cancel := context.WithTimeout(ctx, i.runtime.startTimeout())
	defer cancel()
	if err := m.Reach(limited); err != nil {
		return fmt.Errorf("the guest does not answer: %w", err)
	}
	return m.Identify(ctx, i.current().Annotations[noteNonce], i.name)
}
