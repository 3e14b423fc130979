package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/atoll-run/atoll/internal/sandbox"
)

var _ sandbox.PoolKeeper = (*Runtime)(nil)

// warmPool is what of a SandboxWarmPool is used.
type warmPool struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Replicas int `json:"replicas"`
	} `json:"spec"`
	Status struct {
		ReadyReplicas      int   `json:"readyReplicas"`
		ObservedGeneration int64 `json:"observedGeneration"`
	} `json:"status"`
}

// KeepPools has a SandboxTemplate and a SandboxWarmPool for each pool, with its size, and
// removes those of other pools of this installation.
func (r *Runtime) KeepPools(ctx context.Context, pools []sandbox.KeptPool) ([]sandbox.PoolCount, error) {
	c, err := r.cluster()
	if err == nil {
		err = r.checkProvider(ctx, c)
	}
	if err != nil {
		return nil, err
	}
	known, err := list[warmPool](ctx, c, sandboxWarmPools, metav1.ListOptions{LabelSelector: r.selectAll()})
	if err != nil {
		return nil, fmt.Errorf("list of SandboxWarmPools: %w", err)
	}
	byName, counts := map[string]*warmPool{}, make([]sandbox.PoolCount, len(pools))
	for n := range known {
		byName[known[n].Name] = &known[n]
	}
	wanted := map[string]bool{}
	for n := range pools {
		p, err := r.poolOf(pools[n].Spec)
		if err != nil {
			return nil, err
		}
		wanted[p.name] = true
		if counts[n], err = r.keepPool(ctx, c, p, byName[p.name], pools[n].Size); err != nil {
			return nil, err
		}
	}
	return counts, r.removePools(ctx, c, func(o *metav1.PartialObjectMetadata) bool { return !wanted[o.Name] && !r.isTrial(o) })
}

// keepPool makes a pool that is not there, or changes its size.
func (r *Runtime) keepPool(ctx context.Context, c *cluster, p *podPool, known *warmPool, size int) (sandbox.PoolCount, error) {
	switch {
	case known == nil:
		return sandbox.PoolCount{Making: size}, r.makePool(ctx, c, p, size)
	case known.Spec.Replicas != size:
		if err := c.patch(ctx, sandboxWarmPools, p.name, map[string]any{"spec": map[string]any{"replicas": size}}); err != nil {
			return sandbox.PoolCount{}, err
		}
	}
	ready := min(known.Status.ReadyReplicas, size)
	return sandbox.PoolCount{Ready: ready, Making: size - ready, Problem: r.poolProblem(known, size)}, nil
}

// poolProblem says why no pod of a pool is ready although there was time enough.
func (r *Runtime) poolProblem(p *warmPool, size int) string {
	switch {
	case size == 0 || p.Status.ReadyReplicas > 0 || time.Since(p.CreationTimestamp.Time) < r.startTimeout():
		return ""
	case p.Status.ObservedGeneration == 0:
		return "the controller of agent-sandbox has not looked at SandboxWarmPool " + p.Name + ": does it run, with --extensions?"
	}
	return "no pod of SandboxWarmPool " + p.Name + " is ready: look at kubectl describe sandbox,pod in namespace " + r.settings.Namespace
}

// makePool makes the SandboxTemplate, which has the pods' content in its name and so is
// never changed, and the SandboxWarmPool.
func (r *Runtime) makePool(ctx context.Context, c *cluster, p *podPool, size int) error {
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&p.pod.Spec)
	if err != nil {
		return err
	}
	labels := map[string]any{labelInstallation: r.labels("")[labelInstallation]}
	made := map[resourceKind]map[string]any{
		sandboxTemplates: {"apiVersion": sandboxTemplates.GroupVersion().String(), "kind": "SandboxTemplate", "spec": map[string]any{
			"podTemplate": map[string]any{"metadata": map[string]any{"labels": maps.Clone(labels)}, "spec": spec},
			// The namespace's own policies are those of every sandbox.
			"networkPolicyManagement": "Unmanaged", "envVarsInjectionPolicy": "Disallowed", "volumeClaimTemplatesPolicy": "Disallowed", "service": false,
		}},
		sandboxWarmPools: {"apiVersion": sandboxWarmPools.GroupVersion().String(), "kind": "SandboxWarmPool", "spec": map[string]any{
			"replicas": int64(size), "sandboxTemplateRef": map[string]any{"name": p.name}, "updateStrategy": map[string]any{"type": "Recreate"},
		}},
	}
	for _, kind := range []resourceKind{sandboxTemplates, sandboxWarmPools} {
		made[kind]["metadata"] = map[string]any{"name": p.name, "labels": maps.Clone(labels), "annotations": maps.Clone(p.notes)}
		if err := c.createObject(ctx, kind, made[kind]); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// removePools removes those of the pools of this installation that unwanted names. Pods that
// wait in them go too; those of claims belong to their claims.
func (r *Runtime) removePools(ctx context.Context, c *cluster, unwanted func(*metav1.PartialObjectMetadata) bool) error {
	for _, kind := range []resourceKind{sandboxWarmPools, sandboxTemplates} {
		found, err := list[metav1.PartialObjectMetadata](ctx, c, kind, metav1.ListOptions{LabelSelector: r.selectAll()})
		if err != nil {
			return fmt.Errorf("list of %s: %w", kind.Resource, err)
		}
		for n := range found {
			if o := &found[n]; unwanted(o) && o.DeletionTimestamp == nil {
				if err := c.remove(ctx, kind, o.Name, o.UID, 0); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// podPool is a pool of agent-sandbox.
type podPool struct {
	name  string         // of the SandboxTemplate and of the SandboxWarmPool
	pod   *corev1.Pod    // what its pods are made of
	notes map[string]any // annotations of both
}

// poolOf returns the pool with pods for spec, which have nothing that says whose they are.
func (r *Runtime) poolOf(spec *sandbox.Spec) (*podPool, error) {
	shaped := shapedSpec(spec)
	shaped.Env, shaped.Kind = nil, sandbox.KindPool
	pod, err := template(shaped, &r.settings)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(pod.Spec)
	if err != nil {
		return nil, err
	}
	return &podPool{name: namePrefix + digest(r.installation, "pool", spec.AgentID, string(text)), pod: pod}, nil
}

// shapedSpec is spec with the name inside that pods of pools have.
func shapedSpec(spec *sandbox.Spec) *sandbox.Spec {
	shaped := *spec
	shaped.Hostname = sandbox.PoolHostname
	return &shaped
}

// createObject makes an object of a kind that has no type here.
func (c *cluster) createObject(ctx context.Context, kind resourceKind, object map[string]any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := c.of(kind).Create(ctx, &unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
	return explain(err)
}

// patch changes some fields of an object.
func (c *cluster) patch(ctx context.Context, kind resourceKind, name string, fields map[string]any) error {
	text, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err = c.of(kind).Patch(ctx, name, types.MergePatchType, text, metav1.PatchOptions{})
	return explain(err)
}
